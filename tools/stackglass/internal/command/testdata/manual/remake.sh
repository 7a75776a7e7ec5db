#!/bin/sh
# Records the traces of the manual's examples again: needs bin/stackglass and clang-19.
cd "$(dirname "$0")" || exit 1
for source in *.c; do
    program=${source%.c}
    ../../../../../../bin/stackglass cc -- clang-19 -O2 -g "$source" -o "$program" && ./"$program" && rm "$program"
done
