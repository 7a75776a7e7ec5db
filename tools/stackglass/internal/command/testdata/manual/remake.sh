#!/bin/sh
# Records the traces of the manual's examples again: needs bin/stackglass and clang-19.
cd "$(dirname "$0")" || exit 1
for source in *.c; do
    program=${source%.c}
    case $program in
    particles) options='-fdebug-compilation-dir=.' ;;
    *) options= ;;
    esac
    # shellcheck disable=SC2086
    ../../../../../../bin/stackglass cc -- clang-19 -O2 -g $options "$source" -o "$program" && ./"$program" && rm "$program"
done
