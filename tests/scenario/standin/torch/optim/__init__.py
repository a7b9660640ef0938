# SPDX-License-Identifier: MIT. Stand-in.
import os

from . import optimizer

if os.environ.get("STANDIN") != "bare":
    from .optimizer import Optimizer

    class SGD(Optimizer):
        def step(self, closure=None):
            return closure() if closure is not None else None

    class Adam(Optimizer):
        def step(self, closure=None):
            return closure() if closure is not None else None
