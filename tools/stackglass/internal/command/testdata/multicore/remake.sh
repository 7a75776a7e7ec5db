#!/bin/sh
# Makes the traces here again: of one of the kernels that predictions for several cores are
# held against, with 1, 2 and 4 threads, and Cachegrind's counts of its own source file.
# Needs clang-19, libomp-19-dev and valgrind.
set -e
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../../../../..
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$root" && go build -o "$folder/stackglass" ./tools/stackglass)
cp "$root/tools/multicore/kernels/redblack.c" "$folder"
cd "$folder"
flags="-O2 -g -fdebug-compilation-dir=. -fopenmp redblack.c"
./stackglass cc -- clang-19 $flags -o redblack
for threads in 1 2 4; do
	OMP_NUM_THREADS=$threads STACKGLASS_QUIET=1 STACKGLASS_OUT="$here/redblack.$threads.sgt" ./redblack
done
clang-19 $flags -o plain
OMP_NUM_THREADS=4 valgrind -q --tool=cachegrind --cache-sim=yes --I1=8192,8,64 --D1=8192,8,64 --LL=131072,16,64 \
	--cachegrind-out-file=counts ./plain
awk '/^fl=/ { own = /redblack\.c$/ } /^(desc|events):/ || own' counts >"$here/redblack.4.cachegrind"

# Runs with one thread of larger.c, at several inputs.
cp "$here/larger.c" .
./stackglass cc -- clang-19 -O2 -g -fdebug-compilation-dir=. -fno-vectorize -fno-slp-vectorize -fno-unroll-loops -fopenmp larger.c -o larger
for n in 16 24 32 48; do
	env -i OMP_NUM_THREADS=1 STACKGLASS_QUIET=1 STACKGLASS_OUT="$here/gemm-$n.sgt" setarch -R ./larger $n
done
for n in 16 32 48 64; do
	env -i OMP_NUM_THREADS=1 STACKGLASS_QUIET=1 STACKGLASS_OUT="$here/jacobi-$n.sgt" setarch -R ./larger $n stencil
done

# A run with one thread of unsaid.c.
cp "$here/unsaid.c" .
./stackglass cc -- clang-19 -O2 -g -fdebug-compilation-dir=. -fno-vectorize -fno-slp-vectorize -fno-unroll-loops -fopenmp unsaid.c -o unsaid
env -i OMP_NUM_THREADS=1 STACKGLASS_QUIET=1 STACKGLASS_OUT="$here/unsaid.sgt" setarch -R ./unsaid
