#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. run.sh BUILD: the CPU benchmarks, each with its own floor or figure. A
# target that is missed is said and fails nothing here.
set -eu
cd "$(dirname "$0")/../.."
b=$(realpath "${1:-build}") CC=${CC:-cc}
mkdir -p "$b/bench"
flags="-std=c17 -D_GNU_SOURCE -O2 -Iproto/abi -Iproto/wire -Iproto/place -Idaemon -Ilibclient -Itests/unit"
# shellcheck disable=SC2046,SC2086
{
        $CC $flags tests/bench/scope_bench.c -o "$b/bench/scope_bench" -L"$b/lib" -lprotond \
                -Wl,-rpath,"$b/lib" -lpthread -lm
        $CC $flags $(pkg-config --cflags libuv msgpack) tests/bench/fold_bench.c -o "$b/bench/fold_bench" \
                "$b/ar/libdaemon.a" "$b/ar/libwire.a" $(pkg-config --libs libuv msgpack sqlite3 libzstd jansson) -lpthread -lm
        $CC $flags $(pkg-config --cflags libuv msgpack check) tests/bench/store_bench.c -o "$b/bench/store_bench" \
                "$b/ar/libdaemon.a" "$b/ar/libwire.a" $(pkg-config --libs libuv msgpack sqlite3 libzstd jansson check) -lpthread -lm
        $CC $flags tests/scenario/job.c -o "$b/bench/job" -L"$b/lib" -lprotond -lpthread
        $CC $flags tests/bench/view_bench.c -o "$b/bench/view_bench" $(pkg-config --libs sqlite3) -lm
}
echo "== scopes in the job"
"$b/bench/scope_bench" || true
echo "== drain, correlate, tree"
"$b/bench/fold_bench" || true
echo "== store: cells in one transaction"
"$b/bench/store_bench" || true
echo "== protonview tree of 100 000 nodes"
"$b/bench/view_bench" "$b/bin/protonview" || true
echo "== an idle daemon"
"${PYTHON:-/usr/bin/python3}" tests/bench/idle_bench.py "$b" "$b/bench/job" || true
