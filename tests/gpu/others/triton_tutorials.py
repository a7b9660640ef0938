# SPDX-License-Identifier: MIT. triton_tutorials.py: kernels as Triton's tutorials write them: addition, a fused softmax, a tuned matrix product.
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax_kernel(out, x, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)


@triton.autotune([triton.Config({"BM": m, "BN": n, "BK": 32}, num_warps=w, num_stages=3) for m, n, w in ((64, 64, 4), (128, 64, 4), (128, 128, 8))],
                 key=["M", "N", "K"], cache_results=True)
@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        r = k + tl.arange(0, BK)
        acc += tl.dot(tl.load(a + i[:, None] * K + r[None, :]), tl.load(b + r[:, None] * N + j[None, :]))
    tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16))


torch.manual_seed(0)
x, y = torch.rand(98432, device="cuda"), torch.rand(98432, device="cuda")
out = torch.empty_like(x)
rows = torch.randn(512, 781, device="cuda")
soft = torch.empty_like(rows)
done = 0
for _ in range(20):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    softmax_kernel[(512,)](soft, rows, 781, BLOCK=1024)
    for size in (512, 1024):
        a, b = (torch.ones(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
        c = torch.empty(size, size, device="cuda", dtype=torch.float16)
        matmul_kernel[lambda m, s=size: (s // m["BM"], s // m["BN"])](a, b, c, size, size, size)
    done += 1
torch.testing.assert_close(out, x + y)
torch.testing.assert_close(soft, torch.softmax(rows, 1))
torch.cuda.synchronize()
assert c[0, 0].item() == 1024
print(f"rounds={done}")
