#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. lint.sh: what a machine can say about the code: layout, warnings of a
# second compiler, shape, forbidden calls, exported symbols. Prints the highest GLIBC version that the
# libraries meant for jobs ask for.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
say() {
        printf '%s\n' "$1"
        bad=1
}
sources=$(git ls-files '*.c' '*.h' | grep -v '^tests/golden/')
# shellcheck disable=SC2086
fmt=$(clang-format --dry-run $sources 2>&1 | grep -c 'warning:')
[ "$fmt" -eq 0 ] || say "clang-format: $fmt places differ; run: clang-format -i \$(git ls-files '*.c' '*.h')"
bash tests/checksrc.sh || bad=1
make -s B=build/clang CC=clang WERROR=-Werror "-j$(nproc)" said || say "clang: warnings above"
# No function may be over 40 in complexity or 150 lines.
if command -v pmccabe >/dev/null; then
        # shellcheck disable=SC2046
        pmccabe $(git ls-files 'agent/*.c' 'daemon/*.c' 'libclient/*.c' 'proto/*.c' 'viewer/*.c') |
                awk '$2 > 40 || $5 > 150 { print "too much in one function: " $6, $7, "complexity", $2, "lines", $5; n++ } END { exit n > 0 }' || bad=1
fi
# Programs of this tree's reader are compiled with -Ilibclient (README.md).
for header in libclient/*.h; do
        [ ! -e "/usr/include/${header#libclient/}" ] || say "$header hides the system's <${header#libclient/}>"
done
for lib in build/lib/libprotond.so.0 build/lib/libprotond-agent.so.0; do
        extra=$(nm -D --defined-only "$lib" | awk '{print $3}' | grep -vE '^(protond_|InitializeInjection|LIBPROTOND)' || true)
        [ -z "$extra" ] || say "$lib exports more than its API: $extra"
        printf '%s needs %s\n' "$lib" "$(objdump -T "$lib" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)"
done
# What a room may not use although the header is the system's, or a declaration would do: its objects
# must not want such symbols.
while read -r room pattern why; do
        wants=$(nm -u "build/ar/$room.a" | awk 'NF == 2 { print $2 }' | grep -E "^($pattern)" | sort -u | tr '\n' ' ')
        [ -z "$wants" ] || say "$room: $why, and wants $wants"
done <<'EOF'
daemon/query msgpack_|wire_ questions are answered with structs
daemon/query sqlite3_ the SQL is daemon/store's
daemon/query fnmatch a stranger's pattern is for words_match()
daemon/control sqlite3_|store_|fold_|intake_|attached_|journal_ a verb asks daemon/query
EOF
# What loads libprotond into programs stands in one table; the examples name all of it.
for name in $(grep -oE '"[A-Z0-9_]+_(PATH|LIBRARIES)"' proto/terms/backends.h | tr -d '"'); do
        for f in systemd/examples/*; do
                grep -q "$name" "$f" || say "$f does not name $name of proto/terms/backends.h"
        done
done
# The fold is a function of the journal's entries: beside its own rooms it asks for memory and text,
# and nobody for the time, a file, a socket or a variable.
asks=$(comm -23 <(nm -u build/ar/daemon/fold.a | awk 'NF == 2 { print $2 }' | sort -u) \
        <(nm --defined-only build/ar/daemon/fold.a build/ar/proto/{session,base}.a |
                awk 'NF == 3 && $3 !~ /^(profile|row|schema)_/ { print $3 }' | sort -u) |
        grep -vxE '([mc]|re)alloc|reallocarray|free|(mem|str)[a-z]+|qsort|v?snprintf|__ctype_b_loc|__.*_chk(_fail)?')
[ -z "$asks" ] || say "daemon/fold asks the world: $asks"
# What can be set stands in one table; the page in docs/ is its copy, and no other variable is read.
sed -n '/^```$/,/^```$/{/^```$/!p}' docs/options.md | cmp -s - <(build/bin/protonctl help options) ||
        say "docs/options.md is not what \`protonctl help options\` prints"
known=$(build/bin/protonctl help options; build/bin/protond --help | sed 's/^  \([a-z_]*\) .*/PROTOND_\U\1/'; echo PROTOND_TOKEN)
for name in $(git ls-files 'agent/*.[ch]' 'libclient/*.[ch]' 'libclient/*.py' 'daemon/*.[ch]' 'viewer/*.[ch]' 'proto/*.[ch]' |
        xargs grep -hoE '"PROTOND_[A-Z_]+"' | tr -d '"' | sort -u); do
        grep -qwF "$name" <<<"$known" || say "$name is read and stands in no table"
done
exit $bad
