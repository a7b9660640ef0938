# SPDX-License-Identifier: MIT. alloc_work.py: a program that allocates what it knows; alloc_check.py asks what was recorded of it.
"""alloc_work.py driver|torch|expandable|blocks|blocks-expandable OUT

driver: cudaMalloc, cudaMallocPitch, cudaMallocHost, cudaMallocManaged and cudaMallocAsync by ctypes, in scopes, from two
threads, freed in other scopes than allocated, some never. OUT: what there was, by kind and scope.
torch: tensors of torch's caching allocator. OUT: torch.cuda.memory_stats(). expandable: the same with expandable segments.
blocks: steps of a small transformer, on two streams, one of which tells the allocator so. OUT: memory_stats(), as the recording ends."""
import contextlib
import ctypes
import json
import os
import pathlib
import random
import sys
import threading

mode, out = sys.argv[1], pathlib.Path(sys.argv[2])
if mode.endswith("expandable"):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch

try:
    from protond import scope
except ImportError:
    def scope(name):
        return contextlib.nullcontext()

ROUNDS = 200


def runtime():
    torch.zeros(1, device="cuda")
    with open("/proc/self/maps") as f:
        path = next(line.split()[-1] for line in f if "libcudart.so" in line)
    return ctypes.CDLL(path)


class Book:
    """What was allocated, by kind; held by (kind, scope); the peak of each kind and who held it."""

    def __init__(self, cuda):
        self.cuda, self.lock, self.kinds, self.live = cuda, threading.Lock(), {}, {}

    def of(self, kind):
        return self.kinds.setdefault(kind, {"allocs": 0, "frees": 0, "allocated": 0, "freed": 0, "live": 0, "peak": 0,
                                            "held": {}, "at_peak": {}})

    def alloc(self, kind, where, bytes):
        p, pitch = ctypes.c_void_p(), ctypes.c_size_t()
        at, n = ctypes.byref(p), ctypes.c_size_t(bytes)
        with self.lock:  # the peak is that of one order of events
            if kind == "pitch":
                r = self.cuda.cudaMallocPitch(at, ctypes.byref(pitch), n, ctypes.c_size_t(4))
                bytes = pitch.value * 4
            else:
                r = {"device": lambda: self.cuda.cudaMalloc(at, n), "pinned": lambda: self.cuda.cudaMallocHost(at, n),
                     "managed": lambda: self.cuda.cudaMallocManaged(at, n, 1),
                     "pool": lambda: self.cuda.cudaMallocAsync(at, n, ctypes.c_void_p(0))}[kind]()
            assert r == 0, (kind, r)
            kind = "device" if kind == "pitch" else kind
            k = self.of(kind)
            k["allocs"] += 1
            k["allocated"] += bytes
            k["live"] += bytes
            k["held"][where] = k["held"].get(where, 0) + bytes
            if k["live"] > k["peak"]:
                k["peak"], k["at_peak"] = k["live"], dict(k["held"])
            self.live[p.value] = (kind, where, bytes)
        return p.value

    def free(self, address):
        with self.lock:
            kind, where, bytes = self.live.pop(address)
            p = ctypes.c_void_p(address)
            r = {"device": self.cuda.cudaFree, "managed": self.cuda.cudaFree, "pinned": self.cuda.cudaFreeHost,
                 "pool": lambda q: self.cuda.cudaFreeAsync(q, ctypes.c_void_p(0))}[kind](p)
            assert r == 0, (kind, r)
            k = self.of(kind)
            k["frees"] += 1
            k["freed"] += bytes
            k["live"] -= bytes
            k["held"][where] -= bytes


def thread(book, i):
    pick, mine = random.Random(i), []
    for _ in range(ROUNDS):
        where = f"thread-{i}/{pick.choice('abc')}"
        with scope(f"thread-{i}"), scope(where[-1]):
            if mine and pick.random() < 0.4:
                book.free(mine.pop(pick.randrange(len(mine))))
            else:
                kind = pick.choice(("device", "device", "pitch", "pinned", "managed", "pool"))
                mine.append(book.alloc(kind, where, pick.randrange(1, 1 << 20)))


def driver():
    book = Book(runtime())
    threads = [threading.Thread(target=thread, args=(book, i)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    torch.cuda.synchronize()
    return book.kinds


def tensors():
    kept = []
    for i in range(60):
        with scope("step"):
            with scope("grow"):
                kept.append(torch.empty((3 << 20) + i * 4096, dtype=torch.uint8, device="cuda"))
            with scope("work"):
                x = torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
                x.zero_()
                del x
            if i % 20 == 19:
                del kept[::2]
                torch.cuda.empty_cache()
    torch.cuda.synchronize()
    return torch.cuda.memory_stats()


def blocks():
    """Sizes of each kind: small, large, cut, and not worth cutting; freed by other threads (autograd's), and behind another stream."""
    with contextlib.suppress(ImportError):
        from protond import _blocks
        _blocks.BLOCKS.wait()  # built by now, not meanwhile: it sees the first block
    net = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 3).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    side, kept = torch.cuda.Stream(), []
    for i in range(40):
        with scope("step"):
            x = torch.randn(8, 64 + i, 256, device="cuda")
            with scope("forward"):
                loss = net(x).square().mean()
            with scope("backward"):
                loss.backward()
            with scope("optimizer"):
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            with scope("keep"):
                kept.append(torch.empty((1 << 20) + i * 70001, dtype=torch.uint8, device="cuda"))
                kept[-1].record_stream(side)
                if i % 10 == 9:
                    del kept[::2]
                    torch.cuda.empty_cache()
    with scope("too much"):
        try:
            torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            pass
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    with contextlib.suppress(ImportError):
        from protond import _api, _snapshots
        _snapshots.told()
        _api._native.blocks_told()
    out.write_text(json.dumps(stats))
    os._exit(0)  # what is alive stays so


if mode.startswith("blocks"):
    blocks()
out.write_text(json.dumps(driver() if mode == "driver" else tensors()))
