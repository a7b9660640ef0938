# SPDX-License-Identifier: MIT
"""protond: name what a program does, for the profiler of the same name.

    import protond

    session = protond.start("train")          # or run it all under `protonctl run -- python x.py`
    with protond.scope("forward", metrics={"flops16": 2e12}):
        ...
    protond.finalize()                        # stored, and train.hatchet is written

Scopes, states and metrics cost next to nothing while nothing is recorded, so they may stay in the
code. They may be used from any thread, in generators and in asyncio tasks: each task has its own
place in the tree. On a platform other than Linux everything here does nothing.
"""
from ._api import (ALL, DEFAULT_PROFILE_NAME, Error, __version__, activate, context_get, context_set,
                   cpu_timed_scope, deactivate, depth, enter_scope, enter_state, exit_scope, exit_state,
                   finalize, profile, recording, scope, start, state)
from ._options import add_arguments, configure, take_arguments

__all__ = ["ALL", "DEFAULT_PROFILE_NAME", "Error", "__version__", "activate", "add_arguments", "configure",
           "context_get", "context_set", "cpu_timed_scope", "deactivate", "depth", "enter_scope", "enter_state",
           "exit_scope", "exit_state", "finalize", "load_ipython_extension", "profile", "recording", "scope",
           "start", "state", "take_arguments"]


def load_ipython_extension(ipython):
    """`%load_ext protond`: the magics %protond and %%protond of notebooks."""
    from . import notebook
    notebook.load(ipython)
