#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. checksrc.sh: the rules of the house that a compiler does not know.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
deny() { # what, pattern, files...
        local what=$1 pattern=$2 hits
        shift 2
        hits=$(grep -nE "$pattern" "$@" /dev/null | grep -vE '^[^:]+:[0-9]+:\s*(\*|/\*|//)')
        [ -z "$hits" ] || { printf '%s:\n%s\n' "$what" "$hits"; bad=1; }
}
mapfile -t all < <(git ls-files 'agent/*.[ch]' 'daemon/*.[ch]' 'libclient/*.[ch]' 'proto/*.[ch]' 'viewer/*.[ch]')
mapfile -t job < <(git ls-files 'agent/*.[ch]' 'libclient/*.[ch]' | grep -v '^libclient/example/')
deny "banned call" '\b(strcpy|strcat|strncpy|sprintf|strtok|atoi|gets|alloca|system|popen|sleep|usleep)\(' "${all[@]}"
deny "volatile is not synchronisation" '\bvolatile\b' "${all[@]}"
deny "typedef struct" 'typedef struct' "${all[@]}"
deny "the job is the host: no exit, abort, printf, mutex" '[^_a-z](exit|abort|printf|fprintf|pthread_mutex_lock)\(' "${job[@]}"
for f in "${all[@]}"; do
        head -n 1 "$f" | grep -q 'SPDX-License-Identifier: MIT' || { echo "$f: line one lacks the SPDX word"; bad=1; }
        n=$(wc -l <"$f")
        [ "$n" -le 800 ] || { echo "$f: $n lines, is it one noun?"; bad=1; }
done
mapfile -t text < <(git ls-files | grep -vE '\.(gz|zst|png|dump|cuptidump)$|^tests/fuzz/corpus/')
deny "a path of one machine" '(^|[^A-Za-z0-9_.])/(work|root|farm)/[a-z]' "${text[@]}"
exit $bad
