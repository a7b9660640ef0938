#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. run.sh: every fuzzer for some seconds, from its committed corpus.
# Usage: run.sh SECONDS [NAME]. Findings stay in build/fuzz/NAME-*.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-10} only=${2:-}
mkdir -p build/fuzz
flags="-std=c17 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined"
inc="-Idaemon -Iproto/abi -Iproto/wire -Iproto/place -Iviewer $(pkg-config --cflags libuv msgpack jansson sqlite3 libzstd)"
libs="$(pkg-config --libs libuv msgpack jansson sqlite3 libzstd) -lm -lpthread"
rooms=$(ls daemon/*.c proto/wire/*.c | grep -v daemon/main.c)
mkdir -p build/fuzz/obj
for f in $rooms; do
        o=build/fuzz/obj/$(echo "$f" | tr / _).o
        if [ ! -e "$o" ] || [ -n "$(find daemon proto -newer "$o" -name '*.[ch]' -print -quit)" ]; then
                # shellcheck disable=SC2086
                clang $flags -fsanitize=fuzzer-no-link $inc -c -o "$o" "$f" &
                while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
        fi
done
wait
rm -f build/fuzz/rooms.a
ar rcs build/fuzz/rooms.a build/fuzz/obj/*.o
for src in tests/fuzz/fuzz_*.c; do
        name=$(basename "$src" .c)
        if [ -n "$only" ] && [ "$only" != "$name" ]; then continue; fi
        # shellcheck disable=SC2086
        clang $flags $inc -o "build/fuzz/$name" "$src" build/fuzz/rooms.a $libs
        mkdir -p "build/fuzz/corpus-$name" "tests/fuzz/corpus/$name"
        "build/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
                -artifact_prefix="build/fuzz/$name-" "build/fuzz/corpus-$name" "tests/fuzz/corpus/$name" 2>&1 |
                grep -aE 'ERROR|SUMMARY|DONE|stat::|Done' || true
        [ "${PIPESTATUS[0]}" -eq 0 ]
done
