# SPDX-License-Identifier: MIT. serve.py [REQUESTS]: a serving loop: threads that ask, two that answer in batches, each on its stream.
import queue
import sys
import threading

import torch
from torch import nn

requests = int(sys.argv[1]) if len(sys.argv) > 1 else 200
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).cuda().half().eval()
work = queue.Queue()
model(torch.zeros(1, 64, 256, device="cuda", dtype=torch.half))  # so that libraries are ready before there are threads


class Request:
    def __init__(self, i):
        self.tokens, self.answer, self.done = torch.full((64, 256), i / 1000, dtype=torch.half).pin_memory(), None, threading.Event()


def answer():
    """Always four at a time, so that each run launches the same."""
    with torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream()):
        while True:
            with taking:
                batch = [work.get() for _ in range(4)]
            if batch[0] is None:
                return
            x = torch.stack([r.tokens.cuda(non_blocking=True) for r in batch])
            y = model(x).mean(1).cpu()
            for r, row in zip(batch, y):
                r.answer = row
                r.done.set()


def ask(first, n):
    for i in range(first, first + n, 4):
        four = [Request(i + k) for k in range(4)]
        with putting:
            for r in four:
                work.put(r)
        for r in four:
            r.done.wait()


taking, putting = threading.Lock(), threading.Lock()
servers = [threading.Thread(target=answer, name=f"server {i}") for i in range(2)]
clients = [threading.Thread(target=ask, args=(i * requests // 4, requests // 4), name=f"client {i}") for i in range(4)]
for t in servers + clients:
    t.start()
for t in clients:
    t.join()
for _ in range(4 * len(servers)):
    work.put(None)
for t in servers:
    t.join()
torch.cuda.synchronize()
print(f"requests={requests}")
