# SPDX-License-Identifier: MIT. switch_cost.py: what a switch costs: in one process, sessions with it and without in turns.
"""switch_cost.py SWITCH [PAIRS]: prints {"w1": [[tree, switched], ...], "w3": ...}: us per operation, ms per step, for costs() of torch_room.

A callback that was once on stays until the GPU is let go of, so between two sessions nobody records."""
import json
import sys
import time

import protond
import torch
from torch_work import w1, w3

SWITCH = sys.argv[1]
PAIRS = int(sys.argv[2]) if len(sys.argv) > 2 else 16
WORK = {"w1": (w1, 20000), "w3": (w3, 30)}


def one(mode, switches, turn):
    fn, steps = WORK[mode]
    session = protond.start(f"{mode}-{switches}-{turn}", switches=switches)
    try:
        fn(max(2, steps // 5), protond.scope)  # the first steps after a switch differ
        return fn(steps, protond.scope)
    finally:
        protond.finalize(session, None)
        time.sleep(0.2)


torch.zeros(1, device="cuda")
took = {}
for mode in WORK:
    for switches in (SWITCH, None):
        one(mode, switches, "warm")
    took[mode] = []
    for turn in range(PAIRS):
        pair = {s: one(mode, s, turn) for s in ((None, SWITCH) if turn % 2 == 0 else (SWITCH, None))}
        took[mode].append([pair[None], pair[SWITCH]])
print(json.dumps(took))
