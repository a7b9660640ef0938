# SPDX-License-Identifier: MIT
"""The settings of Triton that tools hook into: runtime, with chains of callbacks."""
import os

if os.environ.get("STANDIN") == "knobless":
    raise ModuleNotFoundError("No module named 'triton.knobs'", name="triton.knobs")


class HookChain:
    """Callbacks that are called one after the other; `reversed`: the last one added first."""

    def __init__(self, reversed=False):
        self.calls = []
        self.reversed = reversed

    def add(self, func):
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func):
        if func in self.calls:
            self.calls.remove(func)

    def __call__(self, *args, **kwargs):
        for call in (reversed(self.calls) if self.reversed else self.calls):
            call(*args, **kwargs)


class runtime_knobs:
    """The chains are the class's: other instances have the same ones."""
    launch_enter_hook = HookChain()
    launch_exit_hook = HookChain(reversed=True)
    kernel_load_start_hook = HookChain()
    kernel_load_end_hook = HookChain(reversed=True)
    if os.environ.get("STANDIN") == "unload":
        kernel_unload_hook = HookChain()
    if os.environ.get("STANDIN") == "single":
        launch_enter_hook = launch_exit_hook = kernel_load_end_hook = None


runtime = runtime_knobs()
