#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. run.sh: the models of the ring and the daemon, checked by Spin. Each
# must hold in all its states, with every line of it reached; each of its broken variants (BREAK_n, told
# at its head) must be caught. One line for each: states, seconds.
# Usage: run.sh [MODEL [N]]: all, one model, or its variant N with the way to the error; N 0: as it is.
set -u
cd "$(dirname "$0")" || exit 1
only=${1:-} only_n=${2:-}
command -v spin >/dev/null || { echo "spin is missing: apt-get install spin"; exit 1; }
cc=$(command -v tcc || command -v clang || command -v cc) # of 14 000 lines a variant: tcc takes 10 ms over them
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() { # what, log
        echo "FAIL  $1"
        tail -n 25 "$2" | sed 's/^/      | /'
}

# All states seen, none wrong, no line of the model without use.
holds() { # log
        grep -q 'errors: 0' "$1" && ! grep -qE 'Search not completed|max search depth|out of memory' "$1" &&
                ! grep -E '^[[:space:]].*, state [0-9]+, ' "$1" | grep -qv '"-end-"'
}
caught() { # log
        grep -qE '^pan:1: (assertion violated|invalid end state)' "$1" && ! grep -q 'invalid array index' "$1" &&
                grep -q 'errors: 1' "$1"
}

# In a folder of its own, because Spin's files have fixed names.
check() { # model, variant (0: as it is)
        local dir=$tmp/$1.$2 name=$1 verdict=holds states from=${EPOCHREALTIME/./}
        mkdir "$dir"
        cp "$1.pml" "$dir"
        [ "$2" = 0 ] || { name="$1, BREAK_$2" verdict=caught; }
        if ! (cd "$dir" && spin -a -DBREAK_"$2" "$1.pml" && "$cc" -w -DSAFETY -o pan pan.c) >"$dir/log" 2>&1; then
                fail "$name: not built" "$dir/log"
                return
        fi
        (cd "$dir" && timeout 300 ./pan -m100000 -w20) >>"$dir/log" 2>&1
        states=$(awk '/states, stored/ { print $1 }' "$dir/log")
        if "$verdict" "$dir/log"; then
                printf 'ok    %-22s %-7s %9s states  %s s\n' "$name" "$verdict" "$states" \
                        "$(awk "BEGIN { printf \"%.2f\", (${EPOCHREALTIME/./} - $from) / 1e6 }")"
        else
                fail "$name: not as it must be" "$dir/log"
        fi
        if [ -n "$only_n" ]; then (cd "$dir" && spin -t -p -g -l "$1.pml" | tail -n 200); fi
        rm -rf "$dir"
}

for model in *.pml; do
        name=${model%.pml}
        if [ -n "$only" ] && [ "$only" != "$name" ]; then continue; fi
        for n in 0 $(sed -n 's/^ \* BREAK_\([0-9]*\) .*/\1/p' "$model"); do
                if [ -n "$only_n" ] && [ "$only_n" != "$n" ]; then continue; fi
                check "$name" "$n" >"$tmp/$name.$n.out" &
                while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
        done
done
wait
find "$tmp" -name '*.out' | sort -V | xargs -r cat
grep -qs '^ok' "$tmp"/*.out && ! grep -qs '^FAIL' "$tmp"/*.out
