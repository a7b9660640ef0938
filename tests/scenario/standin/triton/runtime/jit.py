# SPDX-License-Identifier: MIT
"""kernel[grid](*args, **kwargs): what leads to a launch."""
import inspect
import itertools

from .. import knobs
from ..compiler import CompiledKernel

_numbers = itertools.count()


class JITFunction:
    def __init__(self, fn, launch_metadata):
        self.fn = fn
        self.__name__ = fn.__name__
        self.number = next(_numbers)
        self.launch_metadata = launch_metadata
        self.signature = inspect.signature(fn)
        self.kernels = {}  # by number of warps

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, **kwargs)

    def run(self, *args, grid, num_warps=4, stream=0, **kwargs):
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        kernel = self.kernels.setdefault(num_warps, CompiledKernel(self, num_warps))
        metadata = kernel.launch_metadata(grid, stream, bound.arguments)
        kernel.run(grid, stream, metadata, knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook,
                   bound.arguments)
        return kernel


def jit(fn=None, *, launch_metadata=None):
    """A decorator, with or without arguments."""
    if fn is None:
        return lambda fn: JITFunction(fn, launch_metadata)
    return JITFunction(fn, launch_metadata)
