# For /etc/profile.d/protond.sh: what login shells start is seen. A variable that is set stays.
: "${CUDA_INJECTION64_PATH:=@PREFIX@/lib/libprotond.so.0}"
: "${NVTX_INJECTION64_PATH:=@PREFIX@/lib/libprotond.so.0}"
export CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH
