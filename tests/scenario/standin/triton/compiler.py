# SPDX-License-Identifier: MIT
"""A loaded kernel, and what a launch of it is described with."""
import collections

from . import knobs


class LazyDict:
    """A dict `data`, to which get() adds what the functions give that were added; each is called once."""

    def __init__(self, data):
        self.data = data
        self.extras = []

    def add(self, func, args):
        self.extras.append((func, args))

    def get(self):
        for func, args in self.extras:
            self.data = {**self.data, **func(*args)}
        self.extras.clear()
        return self.data


KernelMetadata = collections.namedtuple("KernelMetadata", "name num_warps num_ctas shared")


class CompiledKernel:
    """A JITFunction for one kind of arguments. `function` is the driver's handle, set when it is loaded."""

    def __init__(self, fn, num_warps):
        self.fn = fn
        self.name = fn.__name__
        self.hash = format(hash(fn.fn) & 0xffffffff, "08x")
        self.metadata = KernelMetadata(self.name, num_warps, 1, 0)
        self.metadata_group = {self.name + ".json": "/" + self.hash, self.name + ".ttgir": "/" + self.hash}
        self.module = self.function = None

    def _init_handles(self):
        if self.module is not None:
            return
        self._say(knobs.runtime.kernel_load_start_hook)
        self.module, self.function = object(), 0x1000 + self.fn.number
        self._say(knobs.runtime.kernel_load_end_hook)

    def unload(self):
        """Triton does this when the kernel is freed."""
        self._say(knobs.runtime.kernel_unload_hook)
        self.module = self.function = None

    def _say(self, chain):
        if chain is not None:
            chain(self.module, self.function, self.name, self.metadata_group, self.hash)

    def launch_metadata(self, grid, stream, args):
        if knobs.runtime.launch_enter_hook is None:
            return None
        self._init_handles()
        metadata = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        if self.fn.launch_metadata is not None:
            metadata.add(self.fn.launch_metadata, (grid, self.metadata, args))
        return metadata

    def run(self, grid, stream, launch_metadata, enter_hook, exit_hook, args):
        """As the C launcher: a launch that fails, or an enter hook that raises, ends it without the exit hook."""
        if enter_hook is not None:
            enter_hook(launch_metadata)
        self.fn.fn(**args)
        if exit_hook is not None:
            exit_hook(launch_metadata)
