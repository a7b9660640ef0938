# SPDX-License-Identifier: MIT. cupy_work.py: CuPy: arrays, BLAS, FFT, sorting, kernels of one's own, streams, a captured graph.
import cupy as cp

cp.random.seed(0)
a = cp.random.rand(512, 512).astype(cp.float32)
b = cp.random.rand(512, 512).astype(cp.float32)
squared = cp.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_difference")
norm = cp.ReductionKernel("float32 x", "float32 y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
scale = cp.RawKernel(r"""
extern "C" __global__ void scale(const float *x, float *y, float k, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) y[i] = x[i] * k;
}""", "scale")
out = cp.empty(512 * 512, dtype=cp.float32)
for i in range(20):
    c = a @ b + cp.sin(a)
    d = squared(a, c)
    n = norm(d)
    f = cp.fft.fft2(c)
    s = cp.sort(d.ravel())
    scale((1024,), (256,), (c, out, cp.float32(i), cp.int32(out.size)))
streams = [cp.cuda.Stream(non_blocking=True) for _ in range(3)]
for s in streams:
    with s:
        for _ in range(10):
            cp.add(a, b, out=cp.empty_like(a))
        host = cp.asnumpy(a.sum(axis=0), stream=s)
    s.synchronize()
with streams[0] as s:
    y = cp.zeros_like(a)
    cp.multiply(a, b, out=y)
    s.synchronize()
    s.begin_capture()
    cp.multiply(a, b, out=y)
    cp.add(y, a, out=y)
    graph = s.end_capture()
    for _ in range(15):
        graph.launch(stream=s)
    s.synchronize()
cp.cuda.Device().synchronize()
print(f"rounds={i + 1}")
