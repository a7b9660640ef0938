# SPDX-License-Identifier: MIT. apis_cost.py: what the switch `api` costs: in one process, sessions with it and without in turns.
"""apis_cost.py: prints {"w1": [[tree, api], ...], "w3": ...}: us per operation, ms per step; apis_check.py reads it.

A callback that was once on stays until the GPU is let go of, so between two sessions nobody records."""
import json
import time

import protond
import torch
from torch_work import w1, w3

PAIRS = 12
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
    one(mode, None, "warm")
    took[mode] = []
    for turn in range(PAIRS):
        pair = {s: one(mode, s, turn) for s in ((None, "api") if turn % 2 == 0 else ("api", None))}
        took[mode].append([pair[None], pair["api"]])
print(json.dumps(took))
