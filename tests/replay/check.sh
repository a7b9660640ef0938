#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. check.sh BUILD [build|play]: the CUPTI backend against raw dumps, without a GPU.
#
# Builds the stub libcupti, the tools and the backend over a fake core under BUILD/replay, plays every
# dump, and compares with what `expected` (which shares no code with them) makes of it. `build` does no more
# than to build, `play` plays with what was built. CHECK_SAN=... adds sanitizers. Ends in "replay: N passed, M failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
top=${1:-build}
out=$top/replay
CC=${CC:-cc} PYTHON=${PYTHON:-/usr/bin/python3} CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
export PROTOND_RUNTIME_DIR=/nonexistent/protond PROTOND_DB=/nonexistent/protond.db # of the user's own nothing is met
unset PROTOND_RAW_DUMP PD_REPLAY_FAULT PD_REPLAY_ERROR PD_REPLAY_DUMP PROTOND_CUPTI_BUFFERS
mkdir -p "$out" && out=$(realpath "$out") || exit 1
stub=$out/libcupti.so.13
passed=0 failed=0

ok() {
        passed=$((passed + 1))
        printf 'ok    %s\n' "$1"
}
bad() { # what, file with words
        failed=$((failed + 1))
        printf 'FAIL  %s\n' "$1"
        [ -z "${2:-}" ] || tail -n 12 "$2" | sed 's/^/      | /'
}

flags="-std=c17 -D_GNU_SOURCE -fvisibility=hidden -O1 -g -Wall -Wextra -Iproto/terms -Iproto/abi -Iagent/backend"
[ -z "${CHECK_SAN:-}" ] || flags="$flags -fsanitize=$CHECK_SAN -fno-omit-frame-pointer -fno-sanitize-recover=undefined"
backend=$(ls agent/backend/cupti/*.c)
build() {
        # shellcheck disable=SC2086
        {
                $CC $flags -shared -fPIC -Wl,-soname,libcupti.so.13 tests/replay/stub.c tests/replay/play.c \
                        tests/replay/storm.c tests/replay/dump.c -o "$stub" -lpthread &&
                        $CC $flags tests/replay/gen.c -o "$out/gen" &&
                        $CC $flags tests/replay/expected.c -o "$out/expected" -ldl &&
                        $CC $flags tests/replay/drive.c tests/replay/fake_core.c $backend -o "$out/drive" -lpthread -ldl
        } >"$out/build.log" 2>&1
}
end() {
        echo "replay: $passed passed, $failed failed"
        [ $failed -eq 0 ]
        exit
}
if [ "${2:-}" != play ]; then
        if build; then ok "build"; else
                bad "build" "$out/build.log"
                end
        fi
fi

if [ "${2:-}" != play ] && [ -e "$top/lib/libprotond.so" ]; then # for scenarios that play a dump through the real libprotond
        # shellcheck disable=SC2086
        if $CC $flags -Ilibclient tests/replay/job.c -o "$out/pd_replay_job" -L"$top/lib" -lprotond -ldl \
                -Wl,-rpath,"$(realpath "$top/lib")" 2>"$out/job.log"; then ok "pd_replay_job builds"; else bad "pd_replay_job" "$out/job.log"; fi
fi
if [ -r "$CUDA_HOME/include/cupti.h" ]; then
        if $CC -std=c17 -D_GNU_SOURCE -I"$CUDA_HOME/include" -Iproto/terms -fsyntax-only tests/replay/abi.c 2>"$out/abi.log"; then
                ok "our numbers of CUPTI are those of its headers"
        else bad "our numbers of CUPTI differ from its headers" "$out/abi.log"; fi
else
        echo "--    no CUDA headers: our numbers of CUPTI are not compared with them"
fi
[ "${2:-}" != build ] || end
judge=$(find -L "$CUDA_HOME" -maxdepth 4 -name 'libcupti.so.1[0-9]' 2>/dev/null | head -n 1)

drive() { # dump, then VAR=value...; tree in d.txt, counts in d.err
        local dump=$1
        shift
        env "$@" PD_REPLAY_DUMP="$dump" PROTOND_CUPTI_PATH="$stub" timeout 120 "$out/drive" "$stub" \
                >"$out/d.txt" 2>"$out/d.err"
}
has() { # name, key=value...: the counts line has them all
        local name=$1 kv line
        shift
        line=" $(grep -a '^replay=' "$out/d.err" | tail -n 1) "
        for kv in "$@"; do
                case $line in *" $kv "*) ;; *)
                        bad "$name: no $kv" "$out/d.err"
                        return
                        ;;
                esac
        done
        ok "$name"
}
same() { # name, dump
        "$out/expected" "$2" "$judge" >"$out/e.txt" 2>"$out/e.err"
        if [ ! -s "$out/e.txt" ]; then
                bad "$1: nothing expected" "$out/e.err"
        elif diff "$out/e.txt" "$out/d.txt" >"$out/diff.txt"; then ok "$1"; else bad "$1" "$out/diff.txt"; fi
}

for lib in 10.2 11.1 11.4 11.8 12.4 13.0; do
        for case in eager threads graph armed midcapture copies running unload failed; do
                dump=$out/$case-$lib.cuptidump
                "$out/gen" "$case" "$lib" "$dump" && drive "$dump"
                same "$case, records of CUPTI $lib" "$dump"
        done
done
dump=$out/many-13.0.cuptidump
"$out/gen" many 13.0 "$dump" && drive "$dump"
same "20 000 launches" "$dump"
has "20 000 launches: each has its record" launches=20000 kernels=20000 unanswered=0 pending=0 skipped=0 replay=1

# What went wrong in CUPTI is counted, to the record.
drive "$dump" PD_REPLAY_FAULT=drop
has "dropped by CUPTI" launches=20000 kernels=18000 dropped=2000 unanswered=2000
drive "$dump" PD_REPLAY_FAULT=nullpool
has "no buffer free" launches=20000 kernels=0 dropped=20000 unanswered=20000
drive "$dump" PD_REPLAY_FAULT=unknown
has "a kind that nobody knows" kernels=20000 unknown=320 unwalked=320
drive "$dump" PD_REPLAY_FAULT=wrap
same "correlation ids wrap" "$dump"
drive "$out/eager-13.0.cuptidump" PD_REPLAY_FAULT=zero # 4 of 30; untimed, or running in a forced flush
if awk -F'\t' '{n += $2; u += $4} END {exit !(n == 30 && u == 4)}' "$out/d.txt"; then ok "times of 0"; else bad "times of 0" "$out/d.err"; fi
drive "$out/graph-13.0.cuptidump" PD_REPLAY_FAULT=destroyfirst
same "graph destroyed before its records came" "$out/graph-13.0.cuptidump"
drive "$out/running-13.0.cuptidump"
has "hung kernel" launches=21 kernels=21 running=1 untimed=0 pending=0
drive "$out/midcapture-13.0.cuptidump"
has "session begun inside a capture" launches=3 kernels=6 unanswered=1 pending=0
drive "$out/failed-13.0.cuptidump"
has "launch that failed" launches=3 kernels=2 unanswered=1 pending=0

for e in 39 999 15 35; do
        drive "$out/eager-13.0.cuptidump" PD_REPLAY_ERROR=$e
        if [ $? -eq 1 ] && grep -qaE "^drive: start: $e .*scopes go on" "$out/d.err" && [ ! -s "$out/d.txt" ]; then
                ok "CUPTI error $e: words, no data, no harm"
        else bad "CUPTI error $e" "$out/d.err"; fi
done

drive "$out/eager-13.0.cuptidump" PD_REPLAY_ERROR=39 DRIVE_TAKE=1
same "CUPTI taken from one who has done with it" "$out/eager-13.0.cuptidump"

# A dump that is written while another is played must say the same.
for case in eager threads graph copies running; do
        rm -rf "$out/again" && mkdir "$out/again"
        drive "$out/$case-13.0.cuptidump" PROTOND_RAW_DUMP="$out/again"
        cp "$out/d.txt" "$out/first.txt"
        again=$(ls "$out/again"/*.cuptidump)
        "$out/expected" "$again" "$judge" >"$out/d.txt" 2>"$out/d.err"
        same "raw dump of the replayed $case" "$out/$case-13.0.cuptidump"
        drive "$again"
        same "raw dump of the replayed $case, replayed" "$out/$case-13.0.cuptidump"
done

# A damaged file: refused, or read as far as it is whole.
n=$(stat -c %s "$out/graph-13.0.cuptidump")
crashes=0
for k in $(seq 1 40); do
        head -c $((n * k / 41)) "$out/graph-13.0.cuptidump" >"$out/cut"
        drive "$out/cut"
        [ $? -lt 100 ] || crashes=$((crashes + 1))
        "$PYTHON" - "$out/graph-13.0.cuptidump" "$out/cut" "$k" <<'PY' || crashes=$((crashes + 1))
import random, sys
b = bytearray(open(sys.argv[1], "rb").read())
r = random.Random(int(sys.argv[3]))
for _ in range(3):
    b[r.randrange(24, len(b))] = r.choice((0, 1, 255, r.randrange(256)))
open(sys.argv[2], "wb").write(b)
PY
        drive "$out/cut"
        [ $? -lt 100 ] || crashes=$((crashes + 1))
done
[ $crashes -eq 0 ] && ok "cut and damaged dumps" || bad "cut and damaged dumps: $crashes crashes" "$out/d.err"

# Recorded on a GPU.
n=0
for z in tests/replay/dumps/*.cuptidump.gz; do
        [ -e "$z" ] || continue
        n=$((n + 1))
        gunzip -c "$z" >"$out/recorded.cuptidump"
        drive "$out/recorded.cuptidump"
        same "recorded: $(basename "$z" .cuptidump.gz) ($(tail -n 1 "$out/e.err"))" "$out/recorded.cuptidump"
done
[ $n -gt 0 ] || echo "--    no dump recorded on a GPU is here: the above is synthetic"
end
