# SPDX-License-Identifier: MIT
"""A stand-in for Triton 3.6: where a tool may hook into the launch of a kernel, and no compiler and no GPU.

A kernel is a Python function, run at its launch. What a tool sees is as in Triton: the chains of
triton.knobs.runtime, what they are called with, in which order, and what an exception in them does.

STANDIN=knobless: as before Triton 3.4, without triton.knobs; nothing else is there either.
STANDIN=single: as Triton 3.4, where a hook is one function and no chain.
STANDIN=unload: as Triton 3.8, with a chain for kernels that are unloaded.
"""
import os

__version__ = "3.6.0+standin"

if os.environ.get("STANDIN") != "knobless":
    from . import compiler, runtime  # noqa: F401
    from .runtime.jit import jit  # noqa: F401
