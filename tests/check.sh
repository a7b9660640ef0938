#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. check.sh: tests and one summary, "N passed, N failed"; exits 1 when anything
# failed. `make check` calls it, tests/README.md says more.
#
# check.sh           every test; with SAN=... the unit tests and scenarios under that sanitizer
# check.sh WORD...   some tests: an unknown word is told which there are
# check.sh --long    what takes long
#
# Every test: two lanes run side by side. In front is what waits or looks at a clock, unit tests and
# scenarios; behind are compilers, lint, recordings and models, which get what the front leaves of the
# processors. Each part writes its log under build/check/; a part that cannot run its tool fails by name.
set -u
cd "$(dirname "$0")/.." || exit 1
MAKE=${MAKE:-make} SAN=${SAN:-} fuzz_seconds=${FUZZ_SECONDS:-1}
export CC=${CC:-cc} PYTHON=${PYTHON:-/usr/bin/python3}
out=build/check
cores=$(nproc)
workers=$((2 * cores)) # most tests wait more than they compute
started=$SECONDS
mkdir -p "$out" && : >"$out/counts" || exit 1
# Tests talk to their own daemon only, whatever runs here and the caller's shell is set to: by default they find
# none. make is told all it needs here.
export PROTOND_RUNTIME_DIR=/nonexistent/protond PROTOND_DB=/nonexistent/protond.db
unset PROTOND_TOKEN PROTOND_GPU CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH
unset MAKEFLAGS MFLAGS MAKELEVEL
export -n SAN
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
# Else a second in each forked test and each command; and a forked child may start its parked thread.
export TSAN_OPTIONS=atexit_sleep_ms=50:die_after_fork=0

# --- counting and running -------------------------------------------------------------------------

ok() { # words, tests passed (1)
        echo "${2:-1} 0" >>"$out/counts"
        printf 'ok    %s\n' "$1"
}
not_ok() { # words, log, tests passed (0), failed (1), what is worth showing of the log (its end)
        local file=$out/words.$BASHPID
        echo "${3:-0} ${4:-1}" >>"$out/counts"
        {
                printf 'FAIL  %s (%s)\n' "$1" "$2"
                { [ -n "${5:-}" ] && grep -aE "$5" "$2" | head -n 30 | grep . || tail -n 25 "$2"; } | sed 's/^/      | /'
        } >"$file"
        cat "$file" # at once: the lanes share the terminal
        rm -f "$file"
}
phase() {
        printf -- '--- %s (%ss)\n' "$1" $((SECONDS - started))
}
end() {
        awk -v s=$((SECONDS - started)) '{ p += $1; f += $2 } END {
                print "--- " s " s"; print p + 0 " passed, " f + 0 " failed"; exit f > 0 || p == 0 }' "$out/counts"
}

child= behind=
run() { # seconds, log, command...
        timeout "$1" "${@:3}" >"$2" 2>&1 </dev/null &
        child=$!
        wait "$child"
        local status=$?
        child=
        return $status
}
stop() { # a signal is for all that runs; timeout passes it on to all that it started
        trap - EXIT
        [ -z "$behind" ] || kill "$behind" 2>/dev/null
        [ -z "$child" ] || kill "$child" 2>/dev/null
        exit 130
}
trap stop INT TERM
look() { # sets took: seconds since the last look, of the clock and of what this lane ran
        local now=${EPOCHREALTIME/./} cpu file=$out/times.$BASHPID
        times >"$file"
        cpu=$(tail -n 1 "$file" | awk '{ gsub(/[ms]/, " "); print $1 * 60 + $2 + $3 * 60 + $4 }')
        rm -f "$file"
        took=$(awk "BEGIN { printf \"%.0f s, CPU %.0f s\", ($now - ${looked:-0}) / 1e6, $cpu - ${used:-0} }")
        looked=$now used=$cpu
}

# --- kinds of tests -------------------------------------------------------------------------------

one() { # name, command...: one test
        local name=$1 log
        log=$out/$(printf '%s' "$name" | tr -c 'A-Za-z0-9_.\n' _).log
        look
        if ! run "${limit:-900}" "$log" "${@:2}"; then
                not_ok "$name" "$log"
                return 1
        fi
        look
        ok "$name ($took)"
}
build() { # name, make's arguments...
        one "$1" "$MAKE" "-j$cores" -s CC=gcc "${@:2}"
}
# Of so many that wait beside compilers, one or two may wait in vain. Up to three run once more, alone, and which and why
# is said. Not under a sanitizer: what it found once is true.

# Programs of the Check framework: "97%: Checks: 33, Failures: 1, Errors: 0" has the counts.
unit() { # label, folder, names...
        local label=$1 dir=$2 name log line n bad status again=0
        shift 2
        look
        rm -f "$out/$label".*
        printf '%s\n' "$@" >"$out/$label.names"
        # shellcheck disable=SC2016
        CK_FORK=yes CK_TIMEOUT_MULTIPLIER=4 run 1800 "$out/$label.log" xargs -a "$out/$label.names" -P "$workers" -I{} sh -c \
                'timeout 600 "$2/tests/{}" >"$1.{}.log" 2>&1 </dev/null; echo $? >"$1.{}.status"' sh "$out/$label" "$dir"
        for name in "$@"; do
                log=$out/$label.$name.log status=$(cat "$out/$label.$name.status" 2>/dev/null)
                [ -e "$log" ] || : >"$log"
                line=$(grep -aE '^[0-9]+%: Checks: ' "$log" | tail -n 1)
                if [ -z "$line" ]; then
                        not_ok "$label/$name: did not report (status $status)" "$log"
                        continue
                fi
                n=$(sed -E 's/.*Checks: ([0-9]+),.*/\1/' <<<"$line")
                bad=$(sed -E 's/.*Failures: ([0-9]+), Errors: ([0-9]+).*/\1+\2/' <<<"$line")
                bad=$((bad))
                if [ "$bad" -gt 0 ] || [ "$status" -ne 0 ] || [ "$n" -eq 0 ]; then
                        if [ "$dir" = build ] && [ "$n" -gt 0 ] && again=$((again + 1)) && [ "$again" -le 3 ] &&
                                CK_TIMEOUT_MULTIPLIER=4 run 600 "$log.again" "$dir/tests/$name"; then
                                echo "again $label/$name: $line beside the others (status $status), and all passed alone ($log)"
                                grep -aE '^tests/|ERROR' "$log" | head -n 30 | sed 's/^/      | /'
                                ok "$label/$name: $n, alone" "$n"
                                continue
                        fi
                        not_ok "$label/$name: $line (status $status)" "$log" $((n - bad)) $((bad > 0 ? bad : 1)) \
                                '^tests/|ERROR|runtime error|SUMMARY'
                else
                        ok "$label/$name: $n" "$n"
                fi
        done
        look
        echo "      $label: $took"
}
once_more() { # label, pytest and its arguments...
        run "${limit:-900}" "$out/$1.again.log" "${@:2}" --last-failed --last-failed-no-failures=none
}
scenario() { # label, folder, pytest's arguments...
        local label=$1 log=$out/$1.log why=$out/$1.why line p f
        local -a pytest=(env "PROTOND_BUILD=$(realpath "$2")" "$PYTHON" -m pytest -q -rfEs -o "cache_dir=$PWD/$out/$label.cache" "${@:3}")
        rm -rf "$out/$label.cache"
        look
        run "${limit:-900}" "$log" "${pytest[@]}" -n "$workers" --dist loadgroup
        look
        line=$(grep -aE '(passed|failed|error)' "$log" | tail -n 1)
        p=$(grep -oE '[0-9]+ passed' <<<"$line" | cut -d' ' -f1)
        f=$(grep -oE '[0-9]+ (failed|error)' <<<"$line" | awk '{s+=$1} END {print s+0}')
        { grep -aE '^(FAILED|ERROR) ' "$log"; grep -aE '^E  ' "$log" | head -n 30; } >"$why"
        [ -s "$why" ] || tail -n 25 "$log" >"$why"
        if [ -z "$p" ] || [ "$f" -gt 0 ]; then
                if [ "$2" = build ] && [ "${p:-0}" -gt 100 ] && [ "$f" -le 3 ] && once_more "$label" "${pytest[@]}"; then
                        echo "again $label: $f failed beside the others, and passed alone ($log)"
                        sed 's/^/      | /' "$why"
                        ok "$label: $((p + f)) passed, of these $f alone ($took)" $((p + f))
                else
                        not_ok "$label: ${line:-no result}" "$why" "${p:-0}" $((f > 0 ? f : 1)) .
                fi
        else
                ok "$label: $line ($took)" "$p"
        fi
        # What this machine lacks is said, so that nothing vanishes unseen.
        sed -nE 's/^SKIPPED \[([0-9]+)\] [^ ]+: /\1 /p' "$log" | awk -v of="$label" \
                '{ n = $1; $1 = ""; skipped[$0] += n } END { for (why in skipped) print "skip  " of ": " skipped[why] ":" why }'
}

# --- which there are ------------------------------------------------------------------------------

names() { # folder, pattern, ending: of the files there
        find "tests/$1" -maxdepth 1 -name "$2$3" -printf '%f\n' | sed "s/\\$3\$//" | sort
}
# Those that take long come first, and the others beside them.
first='step_launch ctl_server job_client job_lane fold_restore journal_kill fold_spans'
mapfile -t units < <(printf '%s\n' $first; names unit '*' .c | grep -vxE "main|${first// /|}")
mapfile -t files < <(names scenario 'test_*' .py)
mapfile -t fuzzers < <(names fuzz 'fuzz_*' .c)
# Scenarios whose bytes others make: under the sanitizers here, the rest of them in what takes long.
hostile='liar or imposters or hostile or strangers or import or recover or sql or secure or exports or flood or stack'
mapfile -t all_threaded < <(printf '%s\n' "${units[@]}" | grep -E '^(cupti|job|store|ctl_server|daemon_evil)' | grep -vxE 'cupti_load|job_nvtx_values') # those with threads
# Half of the time of them all is that of these, which have the threads of others: in what takes long.
mapfile -t threaded < <(printf '%s\n' "${all_threaded[@]}" | grep -vxE 'store_(leave|round_trip|faults|columns)|cupti_graph')

plain() { # unit, scenario and what they need, without a sanitizer
        tree=build label='' make_with=(WERROR=-Werror) pytest_with=()
}
sanitized() { # SAN=
        tree=build/${1%%,*} label=${1%%,*}- make_with=(SAN="$1" CFLAGS="-Og -g1") pytest_with=(-m "not slow and not preload")
        case $1 in address*) label=asan- ;; thread) label=tsan- ;; esac
}
targets() { # names of unit tests, as make's in this tree
        local name
        for name in "$@"; do printf '%s\n' "$tree/tests/$name"; done
}

# --- some of them ---------------------------------------------------------------------------------

has() { # word, words...
        local word=$1
        shift
        case " $* " in *" $word "*) return 0 ;; *) return 1 ;; esac
}
some() { # words
        local word file need=() unit=() scenario=() fuzz=() other=()
        for word in "$@"; do
                file=${word##tests/*/} # a path will do, too
                if has "${file%.c}" "${units[@]}"; then
                        unit+=("${file%.c}")
                elif has "${file%.c}" "${fuzzers[@]}"; then
                        fuzz+=("${file%.c}")
                elif file=${word#tests/scenario/} && has "$(sed -E 's/(\.py)?(::.*)?$//' <<<"$file")" "${files[@]}"; then
                        scenario+=("tests/scenario/$(sed -E 's/^([a-z0-9_]+)(\.py)?/\1.py/' <<<"$file")")
                else
                        case $word in
                        unit) unit+=("${units[@]}") ;;
                        scenario) scenario+=(tests/scenario) ;;
                        fuzz) fuzz+=("${fuzzers[@]}") ;;
                        lint | models | replay | page) other+=("$word") ;;
                        *)
                                {
                                        echo "no test is called $word. Those that are:"
                                        printf '%s\n' "all of a kind: unit scenario fuzz lint models replay page" "unit: ${units[*]}" \
                                                "fuzz: ${fuzzers[*]}" "scenario (FILE.py, FILE.py::TEST): ${files[*]}" | fold -s -w 110 | sed 's/^/    /'
                                } >&2
                                exit 2
                                ;;
                        esac
                fi
        done
        if [ -n "$SAN" ]; then sanitized "$SAN"; else plain; fi
        [ "${#unit[@]}" -eq 0 ] || mapfile -t need < <(targets "${unit[@]}")
        [ "${#scenario[@]}" -eq 0 ] || need+=(tests-scenario)
        if has lint "${other[@]}" || has replay "${other[@]}" || has page "${other[@]}"; then need+=(all); fi
        [ "${#need[@]}" -eq 0 ] || build "${label}build" "${make_with[@]}" "${need[@]}" || return
        if [ "${#scenario[@]}" -gt 0 ] && [ -z "$SAN" ] && ! has replay "${other[@]}" && grep -rqs replay "${scenario[@]%%::*}"; then
                one "${label}stub of CUPTI" tests/replay/check.sh "$tree" build
        fi
        [ "${#unit[@]}" -eq 0 ] || unit "${label}unit" "$tree" "${unit[@]}"
        for word in "${other[@]}"; do
                case $word in
                lint) one lint bash tests/lint.sh ;;
                models) one models tests/model/run.sh ;;
                page) one page tests/web/check.sh ;;
                replay) one "${label}replay" env CHECK_SAN="$SAN" tests/replay/check.sh "$tree" ;;
                esac
        done
        for word in "${fuzz[@]}"; do one "$word" bash tests/fuzz/run.sh "$fuzz_seconds" "$word"; done
        case ${#scenario[@]}${scenario[*]} in 1*::*) workers=0 ;; esac # pytest-xdist does not say that there is no such test
        [ "${#scenario[@]}" -eq 0 ] || scenario "${label}scenario" "$tree" "${pytest_with[@]}" "${scenario[@]}"
}

# --- all of them ----------------------------------------------------------------------------------

# What computes. A tenth of a processor that all want, and all that is left. What mostly waits, recordings and the
# page's browser, and what has one thread run beside the rest.
aside() { # as one()
        (
                trap '[ -z "$child" ] || kill "$child"; exit 1' TERM
                one "$@"
        ) &
        asides="$asides $!"
}
work_behind() {
        local asides=
        trap 'for p in $child $asides; do kill "$p"; done; exit 1' TERM
        trap 'echo "end 1" >&3' EXIT
        renice -n 10 -p "$BASHPID" >/dev/null
        limit=1800
        sanitized address,undefined
        mapfile -t need < <(targets "${units[@]}")
        build "build, sanitizers" "${make_with[@]}" tests-scenario "${need[@]}"
        echo "asan $?" >&3
        aside "replay" tests/replay/check.sh build play
        aside "page" tests/web/check.sh
        sanitized thread
        mapfile -t need < <(targets "${threaded[@]}")
        build "build, thread sanitizer" "${make_with[@]}" "${need[@]}"
        echo "tsan $?" >&3
        aside "lint" bash tests/lint.sh
        aside "models" tests/model/run.sh
        one "build, fuzzers" env FUZZ_O=-O0 bash tests/fuzz/run.sh build
        echo "fuzz $?" >&3
        # shellcheck disable=SC2086
        wait $asides
}
declare -A came
await() { # what work_behind() has done, and well
        local what status
        while [ -z "${came[$1]:-}" ] && [ -z "${came[end]:-}" ] && read -r what status <&3; do came[$what]=$status; done
        [ "${came[$1]:-1}" -eq 0 ]
}
every() {
        phase "build"
        plain
        build "build, gcc, -Werror" "${make_with[@]}" tests && one "stub of CUPTI" tests/replay/check.sh build build || return
        rm -f "$out/behind"
        mkfifo "$out/behind" && exec 3<>"$out/behind"
        work_behind &
        behind=$!
        phase "unit"
        unit unit build "${units[@]}"
        phase "scenario; behind it what computes"
        scenario scenario build tests/scenario
        phase "address and undefined behaviour"
        if await asan; then
                sanitized address,undefined
                unit asan "$tree" "${units[@]}"
                scenario asan-scenario "$tree" "${pytest_with[@]}" tests/scenario -k "$hostile"
        fi
        phase "threads"
        if await tsan; then
                sanitized thread
                unit tsan "$tree" "${threaded[@]}"
        fi
        phase "fuzz"
        if await fuzz; then one "fuzz" bash tests/fuzz/run.sh "$fuzz_seconds"; fi
        await end
        behind=
}

# --- what takes long ------------------------------------------------------------------------------

# A limit ends what hangs; together they are more than all of it takes.
long() {
        export PD_SEED=${PD_SEED:-$(date +%y%j)} # other random numbers each day
        phase "build; PD_SEED=$PD_SEED"
        plain
        limit=300 build "build, gcc, -Werror" "${make_with[@]}" tests-scenario || return
        phase "each step of the daemon fails in turn"
        PD_FAULT_ALL=1 limit=1800 scenario every-fault build tests/scenario/test_fault.py
        phase "the power is cut at each write"
        PD_CUT_ALL=1 limit=500 scenario every-cut build tests/scenario/test_store_faults.py -k power_cut
        phase "databases are cut at random bytes"
        PD_CUTS=120 limit=400 scenario cuts build tests/scenario/test_recover.py
        phase "jobs and daemons are killed"
        PD_KILLS=1000 PD_DAEMON_KILLS=500 PD_SUMS_KILLS=40 limit=500 scenario kills build tests/scenario/test_{kill,sums}.py \
                -k "first_scope or killed_daemon or killed_jobs"
        phase "much at once"
        PD_STORM=10 limit=400 scenario storm build tests/scenario/test_storm.py
        PD_JOBS=256 PD_SCOPES=720000000 PD_SESSIONS=10000 limit=400 scenario load build tests/scenario/test_load.py
        phase "liars, and all rounds of unit tests under a sanitizer"
        PD_LIAR_SECONDS=180 limit=260 scenario liars build tests/scenario/test_liar.py -k harm_nobody
        sanitized address,undefined
        mapfile -t need < <(targets "${units[@]}")
        limit=300 build "build, sanitizers" "${make_with[@]}" tests-scenario "${need[@]}" &&
                PD_ROUNDS_ALL=1 unit asan "$tree" "${units[@]}" &&
                PD_LIAR_SECONDS=180 limit=260 scenario asan-liars "$tree" tests/scenario/test_liar.py -k harm_nobody &&
                limit=600 scenario asan-scenario "$tree" "${pytest_with[@]}" tests/scenario -k "not ($hostile)"
        sanitized thread
        mapfile -t need < <(targets "${all_threaded[@]}")
        limit=400 build "build, thread sanitizer" "${make_with[@]}" tests-scenario "${need[@]}" &&
                unit tsan "$tree" "${all_threaded[@]}" &&
                limit=200 scenario tsan-scenario "$tree" "${pytest_with[@]}" tests/scenario -k "test_timeline or test_ranks or test_scopes"
        phase "fuzz"
        local n=${#fuzzers[@]}
        limit=560 one "fuzz" bash tests/fuzz/run.sh $((400 * (cores < n ? cores : n) / n))
}

case ${1:-} in
--long) long ;;
'') if [ -n "$SAN" ]; then some unit scenario; else every; fi ;;
*) some "$@" ;;
esac
end
