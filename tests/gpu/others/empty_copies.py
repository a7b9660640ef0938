# SPDX-License-Identifier: MIT. empty_copies.py: copies and memsets of nothing, and onto themselves, as XLA and others ask for them.
import ctypes

import torch

cuda = ctypes.CDLL("libcuda.so.1")
x, y = (torch.zeros(1024, dtype=torch.uint8, device="cuda") for _ in range(2))
host = torch.zeros(1024, dtype=torch.uint8).pin_memory()
dx, dy, h = (ctypes.c_uint64(t.data_ptr()) for t in (x, y, host))
n, stream, zero = ctypes.c_size_t, ctypes.c_void_p(None), ctypes.c_uint(0)
torch.cuda.synchronize()
for size in (0, 512):
    for _ in range(5):
        for call, *arguments in (
                ("cuMemcpyHtoDAsync_v2", dx, h, n(size), stream), ("cuMemcpyDtoHAsync_v2", h, dx, n(size), stream),
                ("cuMemcpyDtoDAsync_v2", dy, dx, n(size), stream), ("cuMemcpyDtoDAsync_v2", dx, dx, n(size), stream),
                ("cuMemcpyAsync", dy, dx, n(size), stream), ("cuMemcpyHtoD_v2", dx, h, n(size)), ("cuMemcpyDtoH_v2", h, dx, n(size)),
                ("cuMemsetD8Async", dx, zero, n(size), stream), ("cuMemsetD32Async", dx, zero, n(size // 4), stream)):
            status = getattr(cuda, call)(*arguments)
            assert status == 0, (call, size, status)
torch.cuda.synchronize()
print("calls=90")
