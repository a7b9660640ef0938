#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. record.sh DIR OUT: raw dumps of CUPTI for tests/replay/dumps, small and compressed.
#
# Each program runs under `protonctl run` with PROTOND_RAW_DUMP; beside each dump stands how it was made.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$(realpath "$1") out=${2:?usage: record.sh DIR OUT}
mkdir -p "$out" && out=$(realpath "$out") || exit 1
work=$dir/gpu/work
room=$(mktemp -d /dev/shm/pdrec.XXXXXX)
export PROTOND_RUNTIME_DIR=$room/run PROTOND_DB=$room/run/db
mkdir -m 700 "$room/run"

record() { # name, environment..., --, command...
        local name=$1 env=() raw=$room/raw.$1 biggest
        shift
        while [ "$1" != -- ]; do
                env+=("$1")
                shift
        done
        shift
        mkdir -p "$raw"
        env "${env[@]}" PROTOND_RAW_DUMP="$raw" "$dir/bin/protonctl" run -n "$name" -- "$@" \
                >"$raw/out" 2>"$raw/err" </dev/null
        echo "$name: exit $?"
        # The job's processes each write one; the one with GPU work is the largest.
        biggest=$(ls -S "$raw"/*.cuptidump 2>/dev/null | head -n 1)
        if [ -z "$biggest" ]; then
                echo "$name: no dump"
                tail -n 5 "$raw/err"
                return
        fi
        gzip -9 -n -c "$biggest" >"$out/$name.cuptidump.gz"
        {
                printf 'command: %s%s\n' "${env[*]:+${env[*]} }" "$(printf '%s ' "${@/#$dir/DIR}")"
                printf 'gpu: %s\n' "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)"
                sed 's/^/out: /' "$raw/out"
        } >"$out/$name.txt"
}

record eager -- "$work" eager
record many -- "$work" many 4 2000
record graph -- "$work" graph 10
record copies -- "$work" copies
record hang PROTOND_STALL_MS=2000 -- "$work" hang 6
# Captured before the session: armed while it captures, then a session of its own.
"${PYTHON:-python3}" "$here/before.py" "$dir" "$room/raw.before" >"$room/before.out" 2>&1
big=$(ls -S "$room/raw.before"/*.cuptidump 2>/dev/null | head -n 1)
[ -z "$big" ] || gzip -9 -n -c "$big" >"$out/before.cuptidump.gz"
{
        echo "command: tests/gpu/before.py DIR RAW"
        printf 'gpu: %s\n' "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)"
} >"$out/before.txt"
if python3 -c 'import torch' 2>/dev/null; then
        record torch PYTHONPATH="$dir/lib/protond/python" -- python3 "$here/torch_work.py" w3 --tool protond --steps 2
fi
ls -l "$out"
