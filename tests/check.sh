#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. check.sh: every test, one summary. Called by `make check`.
#
# Each part writes its log under build/check/ and adds to the two counters; a part that cannot run its
# tool fails by name. Ends in "N passed, N failed" and exits 1 when anything failed.
set -u
cd "$(dirname "$0")/.." || exit 1
MAKE=${MAKE:-make} PYTHON=${PYTHON:-/usr/bin/python3} CC=${CC:-cc}
out=build/check
mkdir -p "$out"
passed=0 failed=0
jobs=-j$(nproc)
started=$SECONDS
# Tests talk to their own daemon only, whatever the caller's shell is set to.
unset PROTOND_RUNTIME_DIR PROTOND_DB PROTOND_TOKEN PROTOND_GPU CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH

ok() {
        passed=$((passed + 1))
        printf 'ok    %s\n' "$1"
}
not_ok() { # name, log
        failed=$((failed + 1))
        printf 'FAIL  %s (%s)\n' "$1" "$2"
        tail -n 25 "$2" | sed 's/^/      | /'
}
one() { # name, command...: one test
        local name=$1 log
        shift
        log=$out/$(printf '%s' "$name" | tr -c 'A-Za-z0-9_.\n' _).log
        if timeout 600 "$@" >"$log" 2>&1 </dev/null; then ok "$name"; else not_ok "$name" "$log"; fi
}
# Programs of the Check framework: "97%: Checks: 33, Failures: 1, Errors: 0" has the counts. As many at
# once as there are cores.
unit() { # label, directory, regular expression of names (all)
        local label=$1 dir=$2 only=${3:-.} src name names=() log line n bad status
        for src in tests/unit/*.c; do
                name=$(basename "$src" .c)
                [[ $name =~ $only ]] && names+=("$name")
        done
        for name in "${names[@]}"; do
                log=$out/$label.$name
                { CK_FORK=yes CK_TIMEOUT_MULTIPLIER=4 timeout 600 "$dir/tests/$name" >"$log.log" 2>&1 </dev/null; echo $? >"$log.status"; } &
                while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
        done
        wait
        for name in "${names[@]}"; do
                log=$out/$label.$name.log status=$(cat "$out/$label.$name.status")
                line=$(grep -aE '^[0-9]+%: Checks: ' "$log" | tail -n 1)
                if [ -z "$line" ]; then
                        not_ok "$label/$name: did not report (status $status)" "$log"
                        continue
                fi
                n=$(sed -E 's/.*Checks: ([0-9]+),.*/\1/' <<<"$line")
                bad=$(sed -E 's/.*Failures: ([0-9]+), Errors: ([0-9]+).*/\1+\2/' <<<"$line")
                bad=$((bad))
                passed=$((passed + n - bad)) failed=$((failed + bad))
                if [ "$bad" -gt 0 ] || [ "$status" -ne 0 ] || [ "$n" -eq 0 ]; then
                        [ "$bad" -gt 0 ] || failed=$((failed + 1))
                        printf 'FAIL  %s/%s: %s (status %s, %s)\n' "$label" "$name" "$line" "$status" "$log"
                        grep -aE '^tests/|ERROR|runtime error|SUMMARY' "$log" | head -20 | sed 's/^/      | /'
                else
                        printf 'ok    %s/%s: %s\n' "$label" "$name" "$n"
                fi
        done
}
scenario() { # label, build directory, pytest arguments...
        local label=$1 dir=$2 log=$out/$1.log line
        shift 2
        PROTOND_BUILD=$(realpath "$dir") timeout 900 "$PYTHON" -m pytest -q -rfEs -p no:cacheprovider \
                -n "$(nproc)" --dist loadfile tests/scenario "$@" >"$log" 2>&1 </dev/null
        line=$(grep -aE '(passed|failed|error)' "$log" | tail -n 1)
        local p f
        p=$(grep -oE '[0-9]+ passed' <<<"$line" | cut -d' ' -f1)
        f=$(grep -oE '[0-9]+ (failed|error)' <<<"$line" | awk '{s+=$1} END {print s+0}')
        passed=$((passed + ${p:-0})) failed=$((failed + f))
        if [ -z "$p" ] || [ "$f" -gt 0 ]; then
                [ -n "$p" ] || [ "$f" -gt 0 ] || failed=$((failed + 1))
                printf 'FAIL  %s: %s (%s)\n' "$label" "${line:-no result}" "$log"
                grep -aE '^(FAILED|ERROR|E  )' "$log" | head -30 | sed 's/^/      | /'
        else
                printf 'ok    %s: %s\n' "$label" "$line"
        fi
        # What this machine lacks is said, so that nothing vanishes unseen.
        sed -nE 's/^SKIPPED \[([0-9]+)\] [^ ]+: /\1 /p' "$log" | awk -v of="$label" \
                '{ n = $1; $1 = ""; skipped[$0] += n } END { for (why in skipped) print "skip  " of ": " skipped[why] ":" why }'
}
phase() {
        printf -- '--- %s (%ss)\n' "$1" $((SECONDS - started))
}

phase "build"
one "build, gcc, -Werror" "$MAKE" "$jobs" -s CC=gcc WERROR=-Werror tests
[ "$failed" -eq 0 ] || { echo "$passed passed, $failed failed"; exit 1; }
phase "unit"
unit unit build
phase "replay" # builds the stub that a scenario plays recordings through
one "replay" tests/replay/check.sh build
phase "scenario"
scenario scenario build
phase "models"
one "models" tests/model/run.sh
phase "lint"
one "lint" bash tests/lint.sh
phase "address and undefined behaviour"
one "build, sanitizers" "$MAKE" "$jobs" -s CC=gcc SAN=address,undefined CFLAGS="-O1 -g" tests
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
unit asan build/address
scenario asan-scenario build/address -m "not slow and not preload"
phase "threads"
one "build, thread sanitizer" "$MAKE" "$jobs" -s CC=gcc SAN=thread CFLAGS="-O1 -g" tests
unit tsan build/thread "^(cupti|job|store|journal|ctl_server|daemon_evil|daemon_drain)" # those with threads
scenario tsan-scenario build/thread -m "not slow and not preload" -k "test_timeline or test_ranks or test_scopes"
phase "fuzz"
one "fuzz" bash tests/fuzz/run.sh "${FUZZ_SECONDS:-10}"

echo "--- $((SECONDS - started)) s"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
