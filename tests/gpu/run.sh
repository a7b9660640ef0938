#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. run.sh WHAT DIR [arguments]: what needs an NVIDIA GPU. Without words: says which there are.
#
# DIR is a build or an unpacked bundle (bin/, lib/). The GPU programs are taken from DIR/gpu, or built
# there when nvcc is here. record, kineto, pages and faults make files in a folder, their argument. Without a GPU: says so,
# exit 0 for `make gpu-check` on a machine without one.
set -u
here=$(cd "$(dirname "$0")" && pwd)
what=${1:-check} dir=${2:-build}
shift 2 2>/dev/null || true
PYTHON=${PYTHON:-python3}
export PROTOND_RUNTIME_DIR=/nonexistent/protond PROTOND_DB=/nonexistent/protond.db # of the user's own nothing is met

if [ "$what" = build ]; then exec "$here/build.sh" "$dir"; fi
if ! { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }; then
        echo "gpu-$what: no NVIDIA GPU here, nothing was run"
        exit 0
fi
if [ ! -x "$dir/gpu/work" ] || [ ! -e "$dir/gpu/libcount.so" ] || [ ! -e "$dir/gpu/libnccl_plugin.so" ]; then
        if [ -x "${NVCC:-${CUDA_HOME:-/usr/local/cuda}/bin/nvcc}" ]; then
                "$here/build.sh" "$dir" || exit 1
        else
                echo "gpu-$what: $dir/gpu/work, libcount.so or libnccl_plugin.so is missing and nvcc is not here; where it is, run tests/gpu/build.sh $dir"
                exit 1
        fi
fi
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
case $what in
check) exec "$PYTHON" "$here/check.py" "$dir" "$@" ;;
torch) exec "$PYTHON" "$here/torch_check.py" "$dir" "$@" ;;
proton) exec "$PYTHON" "$here/proton_check.py" "$dir" "$@" ;;
proton-tests) exec "$PYTHON" "$here/proton_tests.py" "$dir" "$@" ;; # TESTS OUT
ranks) exec "$PYTHON" "$here/ranks_check.py" "$dir" "$@" ;;
device) exec "$PYTHON" "$here/device_check.py" "$dir" "$@" ;;
others) exec "$PYTHON" "$here/others_check.py" "$dir" "$@" ;;
sync) exec "$PYTHON" "$here/sync_check.py" "$dir" "$@" ;;
alloc) exec "$PYTHON" "$here/alloc_check.py" "$dir" "$@" ;;
ops) exec "$PYTHON" "$here/ops_check.py" "$dir" "$@" ;;
queue) exec "$PYTHON" "$here/queue_check.py" "$dir" "$@" ;;
cpu) exec "$PYTHON" "$here/cpu_check.py" "$dir" "$@" ;;
apis) exec "$PYTHON" "$here/apis_check.py" "$dir" "$@" ;;
timer) exec "$PYTHON" "$here/timer_check.py" "$dir" "$@" ;;
parts) exec "$PYTHON" "$here/parts_check.py" "$dir" "$@" ;;
nccl) exec "$PYTHON" "$here/nccl_check.py" "$dir" "$@" ;;
jax) exec "$PYTHON" "$here/jax_check.py" "$dir" "$@" ;;
bench | overhead | kineto | pages | faults | planted) exec "$PYTHON" "$here/$what.py" "$dir" "$@" ;;
told) exec "$PYTHON" "$here/told_check.py" "$dir" "$@" ;;
record) exec bash "$here/record.sh" "$dir" "$@" ;;
*)
        echo "usage: run.sh build|$(sed -n "s/^\([a-z][a-z| -]*\)) exec.*/\1/p" "$0" | tr -d " " | paste -sd"|") DIR" >&2
        exit 2
        ;;
esac
