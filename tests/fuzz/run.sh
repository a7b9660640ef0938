#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. run.sh: every fuzzer for some seconds, from its committed corpus; as many
# at once as there are cores. Fails when one of them does.
# Usage: run.sh SECONDS|-runs=N|build [NAME]; `build` runs none. Findings stay in build/fuzz/NAME-*, inputs
# that reached something new in build/fuzz/corpus-NAME. FUZZ_O=-O0: for seconds of running, where making them
# takes longer (a third of -O1's time).
set -eu
cd "$(dirname "$0")/../.."
export PROTOND_RUNTIME_DIR=/nonexistent/protond PROTOND_DB=/nonexistent/protond.db # of the user's own nothing is met
limit=${1:-10} only=${2:-}
case $limit in -* | build) ;; *) limit=-max_total_time=$limit ;; esac
mkdir -p build/fuzz/obj
flags="-std=c17 -D_GNU_SOURCE -gline-tables-only ${FUZZ_O:--O1} -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -DPROTOND_BUILD_VERSION=\"fuzz\""
libraries="libuv msgpack jansson sqlite3 libzstd zlib libpcre2-8 ncursesw"
# shellcheck disable=SC2086
inc="$(printf -- '-I%s ' proto/* daemon daemon/*/ viewer/*/) $(pkg-config --cflags $libraries)"
# shellcheck disable=SC2086
libs="$(pkg-config --libs $libraries) -l:libstdc++.so.6 -lm -lpthread"
# Of the daemon what a fuzzer calls: the linker tells what lacks.
rooms=$(git ls-files daemon/config.c daemon/{os,jobs,journal,fold,store}/'*.c' 'proto/*.c' 'viewer/*.c' libclient/hello.c |
        grep -vE '/(protonctl|protonview)\.c')
one_more() { # waits while all cores are taken; a failure is seen by the file that lacks
        while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
}

for f in $rooms; do
        o=build/fuzz/obj/$(echo "$f" | tr / _).o
        if [ ! -e "$o" ] || [ -n "$(find daemon proto viewer libclient -name node_modules -prune -o -newer "$o" -name '*.[ch]' -print -quit)" ]; then
                rm -f "$o"
                # shellcheck disable=SC2086
                clang $flags -fsanitize=fuzzer-no-link $inc -c -o "$o" "$f" &
                one_more
        fi
done
wait
objects=$(for f in $rooms; do echo "build/fuzz/obj/$(echo "$f" | tr / _).o"; done)
# shellcheck disable=SC2086
if [ ! -e build/fuzz/rooms.a ] || [ "$(ar t build/fuzz/rooms.a | sort)" != "$(basename -a $objects | sort)" ] ||
        [ -n "$(find $objects -newer build/fuzz/rooms.a)" ]; then
        rm -f build/fuzz/rooms.a
        ar rcs build/fuzz/rooms.a $objects
fi

names=
for src in tests/fuzz/fuzz_*.c; do
        name=$(basename "$src" .c)
        if [ -n "$only" ] && [ "$only" != "$name" ]; then continue; fi
        names="$names $name"
        rm -f "build/fuzz/$name.status"
        if [ -e "build/fuzz/$name" ] && [ -z "$(find build/fuzz/rooms.a tests/fuzz/*.[ch] daemon proto viewer -name node_modules -prune -o -newer "build/fuzz/$name" \
                -name '*.[cha]' -print -quit)" ]; then continue; fi
        rm -f "build/fuzz/$name"
        # shellcheck disable=SC2086
        clang $flags $inc -o "build/fuzz/$name" "$src" build/fuzz/rooms.a $libs &
        one_more
done
wait
if [ "$limit" = build ]; then
        for name in $names; do [ -x "build/fuzz/$name" ] || exit 1; done
        exit
fi

run() { # name
        local status=0
        mkdir -p "build/fuzz/corpus-$1" "tests/fuzz/corpus/$1"
        "build/fuzz/$1" "$limit" -timeout=120 -rss_limit_mb=2048 \
                -artifact_prefix="build/fuzz/$1-" "build/fuzz/corpus-$1" "tests/fuzz/corpus/$1" \
                >"build/fuzz/$1.log" 2>&1 </dev/null || status=$?
        echo "$status" >"build/fuzz/$1.status"
}
for name in $names; do
        run "$name" &
        one_more
done
wait
bad=0
for name in $names; do
        status=$(cat "build/fuzz/$name.status")
        [ "$status" -eq 0 ] || bad=1
        echo "$name: status $status, $(grep -aE 'DONE|Done' "build/fuzz/$name.log" | tr '\n' ' ')"
        [ "$status" -eq 0 ] || grep -aE -A 12 'ERROR|SUMMARY|not true|runtime error' "build/fuzz/$name.log" | head -60
done
[ -n "$names" ] && [ "$bad" -eq 0 ]
