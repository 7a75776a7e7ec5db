#!/bin/sh
# Makes the demos again from their C sources: compile without a library, run
# under valgrind's lackey tool, keep the data references, pack.
#
# The traces are the same bytes wherever the same compiler and lz4 are used:
# the programs are linked at fixed addresses, run with an empty environment and
# take no input. Made with gcc 12.2.0, valgrind 3.19.0 and lz4 1.9.4 of Debian
# 12 on x86-64; another compiler may order the references differently, and then
# the numbers in demos.json have to be looked at again: `go test ./site/...`
# says which.
set -eu
cd "$(dirname "$0")"

for tool in gcc valgrind lz4; do
	command -v "$tool" >/dev/null || {
		echo "demos: $tool is missing; on Debian: apt-get install gcc valgrind lz4" >&2
		exit 1
	}
done
[ "$(uname -m)" = x86_64 ] || {
	echo "demos: the sources are written for Linux on x86-64, this is $(uname -m)" >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for source in *.c; do
	name=${source%.c}
	gcc -O2 -march=x86-64 -ffreestanding -nostdlib -static -fno-pie -no-pie \
		-fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables \
		-fno-tree-vectorize -fno-tree-loop-distribute-patterns -Wl,--build-id=none \
		-Wall -Wextra "$source" -o "$work/$name"
	(cd "$work" && env -i PATH="$PATH" valgrind --tool=lackey --trace-mem=yes --log-fd=9 \
		"./$name" 9>&1 >/dev/null 2>&1) | grep '^ [LSM] ' >"$work/$name.lackey"
	lz4 -q -12 -B5 -BD --content-size -f "$work/$name.lackey" "$name.lackey.lz4"
	echo "$name: $(wc -l <"$work/$name.lackey") references, $(wc -c <"$name.lackey.lz4") bytes packed"
done
