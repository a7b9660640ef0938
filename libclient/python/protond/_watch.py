# SPDX-License-Identifier: MIT
"""Calls a function once a module has been imported, without importing it."""
import sys

from ._say import say

_waiting = {}  # name of a module: functions


def find_spec(name, path=None, target=None):
    """The spec of a module that is waited for, as all other finders give it; else None.

    Whoever asks may only want to know whether there is such a module: nothing is called before it
    is executed.
    """
    if name not in _waiting:
        return None
    spec = _find(name, path, target)
    if spec is not None:
        _after(name, spec.loader)
    return spec


class _Finder:
    """First on sys.meta_path once something is waited for."""
    find_spec = staticmethod(find_spec)


def _find(name, path, target):
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        spec = find(name, path, target) if finder is not _Finder and find is not None else None
        if spec is not None:
            return spec
    return None


def _after(name, loader):
    execute = getattr(loader, "exec_module", None)
    if execute is None or isinstance(loader, type):  # a namespace; or Python's own, one for many modules
        return

    def exec_module(module):
        if module.__name__ != name:  # a loader of many modules
            return execute(module)
        loader.__dict__.pop("exec_module", None)  # as it was
        execute(module)
        imported(name, module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass


def _call(function, module):
    try:
        function(module)
    except Exception as e:  # the program imports it for reasons of its own
        say(f"{module.__name__} is not named: {e!r}")


def imported(name, module):
    """Calls what waits for the module, which has just been executed."""
    for function in _waiting.pop(name, ()):
        _call(function, module)


def when_imported(name, function):
    """Calls function(module) when `name` has been imported: now, if it has been already."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        _call(function, module)
        return
    _waiting.setdefault(name, []).append(function)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
