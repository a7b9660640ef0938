# SPDX-License-Identifier: MIT. sync_work.py: a program that waits for its GPU a known number of times; sync_check.py counts them.
"""sync_work.py none|kineto OUT [ROUNDS] [THREADS]

Each thread has a scope thread-I with, ROUNDS times (20): a wait for its stream, for an event, for the device, a copy to
pageable memory, a stream that waits for the event; and one each of cudaMalloc, cudaFree and cudaHostAlloc. Before each
wait the GPU sleeps for about 2 ms. OUT: how long the waits took by the program's own clock, in ns by kind."""
import json
import pathlib
import sys
import threading
import time

import torch

try:
    from protond import scope
except ImportError:
    import contextlib

    def scope(name):
        return contextlib.nullcontext()

tool, out = sys.argv[1], pathlib.Path(sys.argv[2])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 20
THREADS = int(sys.argv[4]) if len(sys.argv) > 4 else 2
CYCLES = 4000000
took = {"stream": 0, "event": 0, "device": 0, "copy": 0}
lock = threading.Lock()
turn = threading.Lock()  # a wait for the device would wait for the other thread's work, too


def wait(kind, call):
    torch.cuda._sleep(CYCLES)
    begin = time.perf_counter_ns()
    call()
    end = time.perf_counter_ns()
    with lock:
        took[kind] += end - begin


def rounds(i, stream, other, event, there, here):
    with scope(f"thread-{i}"), torch.cuda.stream(stream):
        for _ in range(ROUNDS):
            with turn:
                wait("stream", stream.synchronize)
                torch.cuda._sleep(CYCLES)
                event.record(stream)
                wait("event", event.synchronize)
                wait("device", torch.cuda.synchronize)
                wait("copy", lambda: here.copy_(there))
                other.wait_event(event)


def alloc():
    with scope("alloc"):
        more = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        del more
        torch.cuda.empty_cache()
        pinned = torch.empty(32 << 20, dtype=torch.uint8, pin_memory=True)
        return pinned


def program():
    kept = []
    for i in range(THREADS):
        there = torch.zeros(64, device="cuda")
        kept.append((i, torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Event(), there, torch.zeros(64)))
        kept[-1][5].copy_(there)
    torch.cuda._sleep(1000)
    for _, stream, _, event, _, _ in kept:
        event.record(stream)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()

    def work():
        threads = [threading.Thread(target=rounds, args=k) for k in kept]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        kept.append(alloc())
    return work


work = program()
if tool == "kineto":
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        work()
    p.export_chrome_trace(str(out) + ".trace.json")
else:
    work()
out.write_text(json.dumps(took))
