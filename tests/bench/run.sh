#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. run.sh BUILD: the CPU benchmarks, each with its own floor or figure. A
# target that is missed is said and fails nothing here.
set -eu
cd "$(dirname "$0")/../.."
b=$(realpath "${1:-build}")
echo "== scopes in the job"
"$b/bench/scope_bench" || true
echo "== drain, correlate, tree"
"$b/bench/fold_bench" || true
echo "== store: cells in one transaction"
"$b/bench/store_bench" || true
echo "== protonview tree of 100 000 nodes"
"$b/bench/view_bench" "$b/bin/protonview" || true
echo "== an idle daemon"
"${PYTHON:-/usr/bin/python3}" tests/bench/idle_bench.py "$b" "$b/tests/job" || true
