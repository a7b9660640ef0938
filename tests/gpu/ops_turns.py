# SPDX-License-Identifier: MIT. ops_turns.py: what operators cost, and what of that is torch's own: one process, one session, in turns.
"""ops_turns.py [BLOCKS]: prints {"off": [ms a step of W3 in each block], "empty": ..., "ops": ...}. empty: a callback of torch's RecordFunction
that does nothing (ops_floor.cpp). A block is a few steps of each, in an order of its own: a busy machine's pace changes within a second."""
import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import protond
import torch
from protond import _ops
from torch.utils.cpp_extension import include_paths, library_paths
from torch_work import w3_step

BLOCKS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
WARM, STEPS = 2, 4  # blocks; steps of a block, behind one


def empty_callback():
    made = os.path.join(tempfile.mkdtemp(), "floor.so")
    subprocess.run(["g++", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-std=c++20", "-w", *(f"-isystem{d}" for d in include_paths()),
                    str(pathlib.Path(__file__).with_name("ops_floor.cpp")), *(f"-L{d}" for d in library_paths()), "-ltorch_cpu", "-lc10",
                    "-o", made], check=True)
    return ctypes.CDLL(made).turn


torch.zeros(1, device="cuda")
step = w3_step(protond.scope)
session = protond.start("turns", switches="ops")  # built and loaded, and on
ops = _ops._lib.protond_ops_turn
ops(0)
turns = {"off": lambda on: None, "empty": empty_callback(), "ops": ops}
took = {way: [] for way in turns}
for block in range(WARM + BLOCKS):
    for way in random.sample(list(turns), len(turns)):
        turns[way](1)
        step(0)
        torch.cuda.synchronize()
        t = time.perf_counter()
        for i in range(STEPS):
            step(i)
        torch.cuda.synchronize()
        if block >= WARM:
            took[way].append((time.perf_counter() - t) / STEPS * 1e3)
        turns[way](0)
protond.finalize(session, None)
print(json.dumps(took))
