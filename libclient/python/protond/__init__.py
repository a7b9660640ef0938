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
from ._api import (ALL, DEFAULT_PROFILE_NAME, Error, SessionError, __version__, activate, context_get, context_set,
                   cpu_timed_scope, deactivate, depth, enter_scope, exit_scope, finalize, profile, recording, scope,
                   start)
from ._options import add_arguments, configure, take_arguments
from ._request import request
from . import _api, context, data, mode, specs
from .specs import max_bps, max_flops
from .state import enter_state, exit_state, metadata_state, state

__all__ = ["ALL", "DEFAULT_PROFILE_NAME", "Error", "SessionError", "__version__", "activate", "add_arguments", "check",
           "configure", "context", "context_get", "context_set", "cpu_timed_scope", "data", "deactivate", "depth",
           "enter_scope", "enter_state", "exit_scope", "exit_state", "finalize", "load_ipython_extension", "max_bps",
           "max_flops", "metadata_state", "mode", "parse", "profile", "read", "recording", "request", "scope", "specs",
           "start", "state", "take_arguments"]


def read(filename):
    """viewer.read(): a profile's file as (frames, inclusive metrics, exclusive metrics, devices)."""
    from . import viewer
    return viewer.read(filename)


def parse(metrics, filename, include=None, exclude=None, threshold=None):
    """viewer.parse(): a profile's file with derived metrics, as (frames, names of their columns)."""
    from . import viewer
    return viewer.parse(metrics, filename, include, exclude, threshold)


def check(source=None, *, max_idle=None, gate="HIGH", db=None):
    """analysis.check() of the newest session in which this process is or was (None), for a script's own test: raises
    analysis.Failed where a verdict is of severity `gate` or worse, the GPUs were idle for more than the share `max_idle` of the
    time, or nothing was recorded. Else the Analysis; None where protond is disabled (PROTOND_DISABLE=1), as nothing was recorded then. Of one that
    goes on, as under `protonctl run`, what there is so far, and verdicts of its tree alone: finalize() it before, if it may end.
    """
    if _api._disabled():
        return None
    import os
    from . import analysis
    try:
        return analysis.check(source or f"@job:{os.getpid()}", max_idle=max_idle, gate=gate, db=db)
    except _api.Error as e:
        if source or not str(e).startswith(("no session ", "nothing has been recorded")):
            raise
    raise analysis.Failed("nothing was recorded of this process: begin with protond.start(), or run it under `protonctl run`", [])


def __getattr__(name):
    """The modules that nobody pays for who does not name them: protond.viewer, protond.torch, ..."""
    if name in ("analysis", "callbacks", "hooks", "memory", "notebook", "timer", "torch", "viewer"):
        from importlib import import_module
        return import_module("." + name, __name__)
    raise AttributeError(f"module 'protond' has no attribute '{name}'")


_api._module = __getattr__  # start(hook=...) asks it for torch and hooks


def load_ipython_extension(ipython):
    """`%load_ext protond`: the magics %protond and %%protond of notebooks."""
    from . import notebook
    notebook.load(ipython)
