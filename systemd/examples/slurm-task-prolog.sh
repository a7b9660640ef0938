#!/bin/sh
# For slurm.conf's TaskProlog: what it prints as `export NAME=VALUE` is set in each task.
[ -n "$CUDA_INJECTION64_PATH" ] || echo "export CUDA_INJECTION64_PATH=@PREFIX@/lib/libprotond.so.0"
[ -n "$NVTX_INJECTION64_PATH" ] || echo "export NVTX_INJECTION64_PATH=@PREFIX@/lib/libprotond.so.0"
