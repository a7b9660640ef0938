# SPDX-License-Identifier: MIT. cpu_turns.py: what samples cost: one process, one session, the switch on and off in turns.
"""cpu_turns.py PROTONCTL [BLOCKS]: prints {"w1": [[tree, sampled], ...], "w3": ...}: us per operation, ms per step, for cpu_check.py.
A block is a fifth of a second of either, in an order of its own: a busy machine's pace changes within seconds."""
import json
import random
import subprocess
import sys
import time

import protond
import torch
from torch_work import w1, w3_step

CTL, BLOCKS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 150
SETTLE_S = 0.1  # from the switch on: the thread that looks has begun, or ended


def w3(steps):
    torch.cuda.synchronize()
    t = time.perf_counter()
    for i in range(steps):
        step(i)
    torch.cuda.synchronize()
    return (time.perf_counter() - t) / steps * 1e3


torch.zeros(1, device="cuda")
step = w3_step(protond.scope)
work = {"w1": lambda: w1(15000, protond.scope), "w3": lambda: w3(12)}
session = protond.start("turns", switches="cpu")
took = {}
for mode, fn in work.items():
    fn()
    took[mode] = []
    for _ in range(BLOCKS):
        pair = {}
        for way in random.sample("-+", 2):
            subprocess.run([CTL, "set", "turns", way + "cpu"], check=True, stdout=subprocess.DEVNULL)
            end = time.perf_counter() + SETTLE_S
            while time.perf_counter() < end:
                step(0)
            pair[way] = fn()
        took[mode].append([pair["-"], pair["+"]])
protond.finalize(session, None)
print(json.dumps(took))
