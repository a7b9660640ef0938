# SPDX-License-Identifier: MIT. fault_train.py: a GPT trained from a data set of lines, with the fault that FAULT names, or none.
"""Of faults.py. FAULT, which the command line does not show: none, or a name of FAULTS, which says what is wrong; NAME-mended, of the last
six, is the same work as it should be done. Without a GPU a small one trains on the CPU. STEPS of them. Ranks (RANK, WORLD_SIZE) share
what GPUs there are; over NCCL, where each has its own."""
import contextlib
import os
import time

if "compile" in os.environ.get("FAULT", ""):  # what is compiled is compiled here, and by this process
    os.environ.update(TORCHINDUCTOR_COMPILE_THREADS="1", TORCHINDUCTOR_CACHE_DIR=os.getcwd() + "/inductor", TRITON_CACHE_DIR=os.getcwd() + "/triton")

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "sync": "each part's loss and each gradient's norm is fetched at once",
    "loader": "an item takes long to make",
    "rank": "the last rank's lines are longer",
    "alloc": "the allocator's cache is emptied in each step",
    "pin": "a buffer is pinned anew in each step",
    "host": "the host counts something, while the GPU is done",
    "launch": "an average of weights is kept by thousands of small operations",
    "idle": "the loop sleeps",
    "comm": "a table's gradient of 2 GB is summed over the ranks",
    "copy": "a table comes anew from pageable memory in each step",
    "small": "each line's weight is copied alone",
    "grid": "long rows, of which there are few, are sorted out",
    "odd": "a kernel of one's own has 100 threads a block",
    "memory": "a large array is passed over again and again",
    "optimizer": "the optimizer goes parameter by parameter",
    "tensor": "all is computed in float32",
    "uneven": "a second GPU is there, and gets little",
    "jitter": "batches are of any length",
    "slow": "now and then a checkpoint is written",
    "warm": "the first steps try out what is fastest",
    "leak": "each step leaves something behind",
    "pressure": "the memory is nearly all taken",
    "throttle": "matrices so large that power is the limit",
    "busy": "other programs want the same cores",
    "occupancy": "a kernel takes so much shared memory that an SM holds one small block",
    "tail": "a kernel has a few blocks more than fit at once",
    "shapes": "each batch has a length of its own",
    "layout": "pictures go through convolutions with their channels first",
    "compile": "what is compiled is compiled anew for each length",
    "path": "in each step the host reckons something between two launches",
}
FAULT, STEPS = os.environ.get("FAULT", "none"), int(os.environ.get("STEPS", "40"))
FAULT, WELL = FAULT.removesuffix("-mended"), FAULT.endswith("-mended")
RANK, RANKS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
CUDA = torch.cuda.is_available()
OWN = CUDA and RANKS > 1 and torch.cuda.device_count() >= RANKS  # a GPU a rank
DEVICE = f"cuda:{RANK if OWN else 0}" if CUDA else "cpu"
LARGE = CUDA and (RANKS == 1 or OWN)
LAYERS, WIDTH, HEADS, VOCAB, BATCH, LENGTH = (4, 2048, 16, 8192, 16, 512) if LARGE else (4, 512, 8, 4096, 16, 256) if CUDA else (2, 64, 2, 512, 4, 32)
NUMBERS = 1 << 26 if CUDA else 1 << 12


class Lines(Dataset):
    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, i):
        line = torch.randint(0, VOCAB, (LENGTH * 4 if FAULT == "rank" and RANK == RANKS - 1 else LENGTH,))
        end = time.perf_counter() + (0.004 if FAULT == "loader" else 0)
        while time.perf_counter() < end:  # as decoding and augmenting would
            line = line.roll(1)
        return line


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (y.view(b, t, HEADS, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(WIDTH, dim=2))
        y = F.scaled_dot_product_attention(q, k, v) if CUDA else (q @ k.transpose(2, 3) / k.shape[-1] ** 0.5).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCAB * (32 if FAULT == "comm" else 1), WIDTH), nn.Embedding(LENGTH * 4, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(1 if FAULT == "comm" else LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        x = self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.head(self.norm(x))


def odd_kernel():
    import cupy
    kernel = cupy.RawKernel('extern "C" __global__ void smooth(float *x) { long i = blockIdx.x * 100L + threadIdx.x;'
                            ' for (int k = 0; k < 4000; k++) x[i] = x[i] * 0.999f + 1e-3f; }', "smooth")
    x = cupy.zeros(100 * 4096, dtype=cupy.float32)
    return lambda: [kernel((4096,), (100,), (x,)) for _ in range(40)]


def own_kernel(blocks, threads, shared=0):
    """40 launches a step of it; each block takes the same time, whatever else is on its SM."""
    import cupy
    kernel = cupy.RawKernel('extern "C" __global__ void reckon(float *x) { extern __shared__ float held[]; float v = threadIdx.x; long end = clock64() + 500000;'
                            ' while (clock64() < end) v = v * 0.999f + 1e-3f; held[threadIdx.x] = v; x[0] = held[0]; }', "reckon")
    if shared > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = shared
    x = cupy.zeros(1, dtype=cupy.float32)
    return lambda: [kernel((blocks,), (threads,), (x,), shared_mem=max(shared, 4 * threads)) for _ in range(40)]


def convolutions():
    """Of half precision, whose kernels want channels last."""
    form = torch.channels_last if WELL else torch.contiguous_format
    net = nn.Sequential(*(nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()) for _ in range(10))).to(DEVICE, memory_format=form)
    pictures = torch.randn(128, 64, 112, 112, device=DEVICE).to(memory_format=form)

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            net(pictures).float().square().mean().backward()
        net.zero_grad()
    return step


def compiled():
    """Once for all lengths, or once for each: of those torch takes eight, and then compiles no more."""
    fit = torch.compile(lambda x: (torch.sin(x) * torch.cos(x) + x.softmax(-1)).sum(0), dynamic=WELL)
    fit(torch.zeros(64, 500, device=DEVICE))  # the first one also loads the compiler
    length = iter(range(501, 1 << 20))
    return lambda: fit(torch.zeros(64, next(length), device=DEVICE))


class Planted:
    """What is wrong in each step; with what it needs, made before the loop."""

    def __init__(self, model):
        big = torch.zeros(NUMBERS, device=DEVICE) if FAULT in ("memory", "grid") else None
        host = torch.zeros(NUMBERS) if FAULT in ("copy", "pin") else None
        small = torch.zeros(64, device=DEVICE)
        sms = torch.cuda.get_device_properties(DEVICE).multi_processor_count if CUDA else 1
        self.kept = []
        self.step = {
            "alloc": torch.cuda.empty_cache,
            "pin": lambda: (torch.cuda.cudart().cudaHostRegister(host.data_ptr(), 1 << 24, 0), torch.cuda.cudart().cudaHostUnregister(host.data_ptr())),
            "host": self.count,
            "launch": lambda: [small.mul_(0.999).add_(0.001) for _ in range(4000)],
            "idle": lambda: (torch.cuda.synchronize(), time.sleep(0.03)),
            "copy": lambda: host.to(DEVICE),
            "small": lambda: [torch.tensor([1.0 / (i + 1)]).to(DEVICE) for i in range(100)],
            "grid": lambda: [big.view(16, -1).cumsum(1) for _ in range(8)],
            "odd": odd_kernel() if FAULT == "odd" else None,
            "memory": lambda: [big.mul_(0.999).add_(0.001) for _ in range(100)],
            "uneven": lambda: torch.zeros(1 << 20, device="cuda:1").add_(1),
            "occupancy": own_kernel(8 * sms, 128, 0 if WELL else 150_000) if FAULT == "occupancy" else None,
            "tail": own_kernel(2 * sms + (0 if WELL else sms // 4), 1024) if FAULT == "tail" else None,
            "layout": convolutions() if FAULT == "layout" else None,
            "compile": compiled() if FAULT == "compile" else None,
            "path": self.reckon,
            "leak": lambda: self.kept.append(torch.zeros(1 << 19, device=DEVICE)),
        }.get(FAULT, lambda: None)
        if FAULT == "pressure":
            free, total = torch.cuda.mem_get_info()
            self.kept.append(torch.empty(free - total // 16 - (8 << 30), dtype=torch.uint8, device=DEVICE))
        self.model = model

    def count(self):
        torch.cuda.synchronize()
        with torch.cuda.nvtx.range("count words"):
            words = {}
            for i in range(200_000):
                words[i % 1000] = words.get(i % 1000, 0) + 1

    def reckon(self):
        """Of a result, for which it waits; or a little, while the GPU works."""
        small = torch.zeros(64, device=DEVICE)
        if not WELL:
            torch.cuda.synchronize()
        with torch.cuda.nvtx.range("reckon"):
            for i in range(20_000 if WELL else 1_500_000):
                if i % 20_000 == 0:
                    small.add_(1)

    def now_and_then(self, step):
        if FAULT == "slow" and step in (14, 27):
            torch.save(self.model.state_dict(), "checkpoint.pt")
        if FAULT == "warm" and step < 3:
            for n in range(20):
                torch.randn(1000 + n, 1000, device=DEVICE) @ torch.randn(1000, 1000 + n, device=DEVICE)
                torch.cuda.synchronize()
                time.sleep(0.01)


def throttle():
    a = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    for _ in range(STEPS):
        with torch.cuda.nvtx.range("step"):
            for _ in range(60):
                a @ a
            torch.cuda.synchronize()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if FAULT == "throttle":
        return throttle()
    if CUDA:
        torch.cuda.set_device(DEVICE)
    model = GPT().to(DEVICE)
    if RANKS > 1:
        dist.init_process_group("nccl" if OWN else "gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **({"foreach": False} if FAULT == "optimizer" else {"fused": True} if CUDA else {}))
    planted = Planted(model)
    running = norm = 0.0
    mixed = CUDA and FAULT != "tensor"
    others = [__import__("subprocess").Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count() if FAULT == "busy" else 0)]
    for step, ids in enumerate(DataLoader(Lines(), batch_size=BATCH, num_workers=0)):
        optimizer.zero_grad()
        if FAULT == "jitter":
            ids = ids[:, :LENGTH // 4 + (step * 7 % 10) * LENGTH // 12]
        if FAULT == "shapes" and not WELL:
            ids = ids[:, :LENGTH - LENGTH // 64 * (step * 7 % 40)]
        ids = ids.to(DEVICE)
        for part in ids.chunk(4 if FAULT == "sync" else 1):
            with torch.autocast("cuda", torch.bfloat16) if mixed else contextlib.nullcontext():
                loss = F.cross_entropy(model(part).flatten(0, 1), part.flatten())
            loss.backward()
            if FAULT == "sync":
                running += loss.item()
        if FAULT == "sync":
            norm = sum(p.grad.norm().item() ** 2 for p in model.parameters()) ** 0.5
        planted.step()
        planted.now_and_then(step)
        optimizer.step()
    if CUDA:
        torch.cuda.synchronize()
    for p in others:
        p.kill()
        p.wait()
    if RANKS > 1:
        dist.destroy_process_group()
    print(f"steps={STEPS} loss={running / STEPS / 4:.3f} norm={norm:.3f}")


main()
