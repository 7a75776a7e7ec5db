#!/bin/sh
# Makes team.sgt and team-cut.sgt again: the run of team.c with one thread, and its
# beginning, which ends within a parallel region. Compiled and run as the demos are
# (site/demos/remake.sh), with clang 19.1.7 on Debian 12, x86-64; another compiler orders
# references otherwise, and then the golden files have to be made again.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd ../../../../.. && go build -o "$work/stackglass" ./tools/stackglass)
cp team.c "$work"
(cd "$work" &&
	./stackglass cc -- clang-19 -O2 -g -fno-vectorize -fno-slp-vectorize -fno-unroll-loops -fopenmp team.c -o team &&
	env -i STACKGLASS_QUIET=1 OMP_NUM_THREADS=1 setarch -R ./team >/dev/null &&
	./stackglass convert team.sgt --limit 20000 -o team-cut.sgt)
mv "$work/team.sgt" "$work/team-cut.sgt" .
