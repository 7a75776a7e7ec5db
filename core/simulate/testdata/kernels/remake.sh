#!/bin/sh
# Makes the traces again from the C sources: compiles them with `stackglass cc`, so
# that they trace themselves, and runs them at fixed addresses. How threads take turns
# differs from run to run, and nothing depends on it.
#
# Made with clang 19.1.7 and libomp 19 on Debian 12, x86-64.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd ../../../.. && go build -o "$work/stackglass" ./tools/stackglass)
for source in *.c; do
	name=${source%.c}
	cp "$source" "$work"
	(cd "$work" && ./stackglass cc -- clang-19 -O2 -g -fno-vectorize -fno-slp-vectorize -fno-unroll-loops \
		-fopenmp "$source" -o "$name" && env -i STACKGLASS_QUIET=1 setarch -R "./$name" >/dev/null)
	mv "$work/$name.sgt" .
done
