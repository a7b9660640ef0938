# SPDX-License-Identifier: MIT
"""What runs around each launch of a Triton kernel: as triton.profiler.hooks. Importing it imports no Triton."""
from .hook import Hook, HookManager
from .instrumentation import InstrumentationHook
from .launch import LaunchHook

__all__ = ["Hook", "HookManager", "InstrumentationHook", "LaunchHook", "register_triton_hook",
           "unregister_triton_hook"]


def register_triton_hook() -> None:
    """Names launches in whatever records this process, without a session of its own: as older Tritons had it."""
    HookManager.register(LaunchHook(), "triton")


def unregister_triton_hook() -> None:
    """Ends that. Nothing, when it was not registered."""
    HookManager.unregister("triton")
