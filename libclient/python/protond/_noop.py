# SPDX-License-Identifier: MIT
"""What the extension offers, where there is none: nothing is recorded."""
import itertools
import os

version = "0.1.0"
ALL, FLUSH, GIVE_BACK = -1, 1, 1
_python = {}


def install(decorate, convert):
    _python["decorate"] = decorate


def _nothing(*args):
    return 0


start = activate = deactivate = finalize = advance_phase = flush = gpu_pause = gpu_resume = _nothing
name = context_get = context_child = span_begin = depth = _nothing


def export(*args):
    out, into = os.pipe()
    os.write(into, b'[{"children": [], "frame": {"name": "ROOT", "type": "function"}, "metrics": {}}, {}]')
    os.close(into)
    return out


_numbers = itertools.count()


def number():
    return next(_numbers)


def recording():
    return False


def _none(*args):
    return None


enter = leave = push = pop = unwind = state_enter = state_exit = op_enter = op_exit = metrics = markers = _none
ops_install = ops_wanted = blocks_wanted = blocks_turns = blocks_anew = blocks_told = library = context_set = span_end = loop = install_async = install_check = stacks = _none


def error():
    return ""


class scope:
    """As on Linux, and does nothing."""

    id = None

    def __new__(cls, name, metrics=None):
        self = super().__new__(cls)
        self.name, self.metrics = name, metrics
        return self

    def __init__(self, name, metrics=None):
        pass

    def __getnewargs__(self):
        return self.name, self.metrics

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None

    def __call__(self, func):
        return _python["decorate"](self, func)
