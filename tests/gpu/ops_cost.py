# SPDX-License-Identifier: MIT. ops_cost.py: what the switch `ops` costs: in one process, sessions with it and without in turns.
"""ops_cost.py: prints {"w3": [[tree, ops], ...], ...}: ms per step, us per operation; ops_check.py reads it. PROTOND_TORCH_SHAPES
and the like in the environment say what is recorded beside names."""
import json
import os

import protond
import torch
from torch_work import w1, w3

PAIRS = int(os.environ.get("PAIRS", "12"))
WORK = {"w1": (w1, 20000), "w3": (w3, 30)}


def one(mode, switches, turn):
    fn, steps = WORK[mode]
    session = protond.start(f"{mode}-{switches}-{turn}", switches=switches)
    try:
        fn(max(2, steps // 5), protond.scope)  # the first steps after a switch differ
        return fn(steps, protond.scope)
    finally:
        protond.finalize(session, None)


torch.zeros(1, device="cuda")
took = {}
for mode in WORK:
    for switches in ("ops", None):
        one(mode, switches, "warm")
    took[mode] = []
    for turn in range(PAIRS):
        pair = {s: one(mode, s, turn) for s in ((None, "ops") if turn % 2 == 0 else ("ops", None))}
        took[mode].append([pair[None], pair["ops"]])
print(json.dumps(took))
