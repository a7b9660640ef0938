# SPDX-License-Identifier: MIT
"""Calls a function once a module has been imported, without importing it."""
import sys

_waiting = {}  # name of a module: functions


def find_spec(name, path=None, target=None):
    """The spec of a module that is waited for, as all other finders give it; else None."""
    functions = _waiting.pop(name, None)  # at once: the search below may come here again
    if functions is None:
        return None
    spec = _find(name, path, target)
    if spec is None:  # not to be had now; maybe later
        _wait(name, functions)
    else:
        _after(spec, functions)
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


def _after(spec, functions):
    loader = spec.loader
    execute = loader.exec_module

    def exec_module(module):
        del loader.exec_module  # as it was
        execute(module)
        for function in functions:
            function(module)

    loader.exec_module = exec_module


def _wait(name, functions):
    _waiting.setdefault(name, []).extend(functions)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def when_imported(name, function):
    """Calls function(module) when `name` has been imported: now, if it has been already."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        function(module)
    else:
        _wait(name, [function])
