# SPDX-License-Identifier: MIT. switch_cost.py: what a switch costs: in one process, sessions with it and without in turns.
"""switch_cost.py SWITCH [PAIRS]: prints {"w1": [[tree, switched], ...], "w3": ...}: us per operation, ms per step, for costs() of torch_room.
SWITCH empty-callback: no switch, but an empty callback of torch's RecordFunction, torch's own part of `ops`.

A callback that was once on stays until the GPU is let go of, so between two sessions nobody records."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import protond
import torch
from torch_work import w1, w3

SWITCH = sys.argv[1]
PAIRS = int(sys.argv[2]) if len(sys.argv) > 2 else 16
WORK = {"w1": (w1, 20000), "w3": (w3, 30)}


def empty_callback():
    from torch.utils.cpp_extension import include_paths, library_paths

    made = os.path.join(tempfile.mkdtemp(), "floor.so")
    subprocess.run(["g++", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-std=c++20", "-w", *(f"-isystem{d}" for d in include_paths()),
                    str(pathlib.Path(__file__).with_name("ops_floor.cpp")), *(f"-L{d}" for d in library_paths()), "-ltorch_cpu", "-lc10",
                    "-o", made], check=True)
    return ctypes.CDLL(made).turn


turn_empty = empty_callback() if SWITCH == "empty-callback" else None


def one(mode, switches, turn):
    fn, steps = WORK[mode]
    empty = turn_empty is not None and switches is not None
    session = protond.start(f"{mode}-{switches}-{turn}", switches=None if turn_empty else switches)
    if empty:
        turn_empty(1)
    try:
        fn(max(2, steps // 5), protond.scope)  # the first steps after a switch differ
        return fn(steps, protond.scope)
    finally:
        if empty:
            turn_empty(0)
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
