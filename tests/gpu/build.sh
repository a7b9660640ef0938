#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. build.sh DIR: the GPU programs into DIR/gpu, for a build or bundle DIR
# that has lib/libprotond.so. Needs nvcc; run time needs a driver only (the CUDA runtime is static).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
dir=$(realpath "${1:?usage: build.sh DIR}")
nvcc=${NVCC:-${CUDA_HOME:-/usr/local/cuda}/bin/nvcc}
CC=${CC:-cc}
mkdir -p "$dir/gpu"
flags="-O2 -std=c++17 -arch=${GPU_ARCH:-sm_90} -Xcompiler -Wall,-Wextra"
# shellcheck disable=SC2086
"$nvcc" $flags -o "$dir/gpu/work-bare" "$here/work.cu"
# shellcheck disable=SC2086
[ ! -e "$dir/lib/libprotond.so" ] || "$nvcc" $flags -DWITH_PROTOND -I"$top/libclient" -o "$dir/gpu/work" \
        "$here/work.cu" -L"$dir/lib" -lprotond -Xlinker '-rpath=$ORIGIN/../lib'
# shellcheck disable=SC2086
[ ! -e "$dir/lib/libprotond.so" ] || "$nvcc" $flags -I"$top/libclient" -o "$dir/gpu/told" "$here/told.cu" -L"$dir/lib" -lprotond \
        -Xlinker '-rpath=$ORIGIN/../lib'
# shellcheck disable=SC2086
"$nvcc" $flags -shared -Xcompiler -fPIC -o "$dir/gpu/libloop.so" "$here/loop.cu"
"$CC" -std=c17 -D_GNU_SOURCE -O2 -Wall -Wextra -fPIC -shared -I"$top/proto/terms" -I"$top/proto/abi" -I"$top/agent" -o "$dir/gpu/libfloor.so" "$here/floor.c" \
        -lpthread -ldl
# NVIDIA's headers are asked whether count.c has their numbers.
"$CC" -std=c17 -D_GNU_SOURCE -O2 -Wall -Wextra -fPIC -shared -I"$(dirname "$nvcc")/../include" -o "$dir/gpu/libcount.so" "$here/others/count.c" \
        -lpthread -ldl
"$CC" -std=c17 -D_GNU_SOURCE -O2 -Wall -Wextra -fPIC -shared -o "$dir/gpu/libnccl_plugin.so" "$here/nccl_plugin.c" -lpthread
