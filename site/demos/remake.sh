#!/bin/sh
# Generates the demos from their C sources: compiles them with `stackglass cc`, so that they trace
# themselves, and runs them.
#
# They are optimised, but neither vectorised nor unrolled, so that their references correspond to
# the source. They run with an empty environment, in their own folder, at fixed addresses and
# without input, so that their references are the same each time. Only the order of the two threads
# of openmp-stencil varies: of many runs, the run is kept in which the threads alternate most often.
# No number in demos.json depends on this order.
#
# They were made with clang 19.1.7 on Debian 12, x86-64. With another compiler, the order of
# references may differ. The numbers in demos.json then have to be checked again: `go test
# ./site/...` lists the ones that differ.
set -eu
cd "$(dirname "$0")"

for tool in go clang-19 setarch; do
	command -v "$tool" >/dev/null || {
		echo "demos: $tool is missing; on Debian: apt-get install clang-19 libomp-19-dev util-linux" >&2
		exit 1
	}
done
[ "$(uname -sm)" = "Linux x86_64" ] || {
	echo "demos: they are traced on Linux on x86-64, this is $(uname -sm)" >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd ../.. && go build -o "$work/stackglass" ./tools/stackglass)

# run NAME creates $work/NAME.sgt. openmp-alone has one thread.
run() {
	alone=
	[ "$1" != openmp-alone ] || alone=OMP_NUM_THREADS=1
	(cd "$work" && env -i $alone STACKGLASS_QUIET=1 setarch -R "./$1" >/dev/null)
}

# turns NAME prints how often another thread continues in the trace.
turns() {
	"$work/stackglass" convert "$work/$1.sgt" --to csv -o - 2>/dev/null |
		awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "tid") tid = i; next }
			$tid != before { n++; before = $tid }
			END { print n - 1 }'
}

for source in *.c; do
	name=${source%.c}
	threads=
	case $name in
	false-sharing* | ring | migratory-counter) threads=-pthread ;;
	openmp-*) threads=-fopenmp ;;
	esac
	cp "$source" "$work"
	(cd "$work" && ./stackglass cc -- clang-19 -O2 -g -fno-vectorize -fno-slp-vectorize -fno-unroll-loops \
		$threads "$source" -o "$name")
	run "$name"
	if [ "$name" = openmp-stencil ]; then
		most=-1
		for _ in $(seq 60); do
			run "$name"
			now=$(turns "$name")
			if [ "$now" -gt "$most" ]; then
				most=$now
				cp "$work/$name.sgt" "$work/best"
			fi
		done
		mv "$work/best" "$work/$name.sgt"
	fi
	mv "$work/$name.sgt" "$name.sgt"
	echo "$name: $(wc -c <"$name.sgt") bytes"
done
