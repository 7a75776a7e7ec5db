#!/bin/sh
# Makes tally.sgt, tally-padded.sgt and counters.sgt again. Where the threads of tally.c
# overlap is the scheduler's choice, so counts differ from run to run.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd ../../../../.. && go build -o "$work/stackglass" ./tools/stackglass)
cp tally.c counters.c "$work"
(cd "$work" &&
	./stackglass cc -- clang-19 -O1 -g -fopenmp tally.c -o tally -lm &&
	./stackglass cc -- clang-19 -O1 -g -fopenmp "-DPAD=_Alignas(64)" tally.c -o tally-padded -lm &&
	./stackglass cc -- clang-19 -O1 -g -pthread counters.c -o counters &&
	for program in tally tally-padded counters; do STACKGLASS_QUIET=1 ./$program >/dev/null; done)
mv "$work/tally.sgt" "$work/tally-padded.sgt" "$work/counters.sgt" .
