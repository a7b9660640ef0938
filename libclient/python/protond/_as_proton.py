# SPDX-License-Identifier: MIT
"""`protonctl run --as-proton`: `import triton.profiler` and `import proton` give protond.

For code that cannot be edited. The names stand for the modules themselves: what is patched in one is
patched in the other.
"""
import importlib
import importlib.machinery
import sys

_SAME = {"hook": "hooks", "scope": "_api", "profile": "_api", "proton": "__main__"}  # modules that are named otherwise here


_TOP = ("triton.profiler", "proton")
_TAKEN = ("scope", "profile", "state")  # an import would put the module where the package has the class


def _ours(name):
    for prefix in _TOP:
        if name == prefix or name.startswith(prefix + "."):
            first, _, rest = name[len(prefix) + 1:].partition(".")
            return ".".join(filter(None, ("protond", _SAME.get(first, first), rest)))
    return None


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        ours = _ours(name)
        if ours is None:
            return None
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as e:
            if e.name == ours:
                return None
            raise
        return importlib.machinery.ModuleSpec(name, _Loader(module), is_package=hasattr(module, "__path__"))


class _Loader:
    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        theirs = module.__spec__.name
        module.__spec__ = self.spec  # importlib gave it the other name's
        for name in _TAKEN if theirs in _TOP else ():
            sys.modules[f"{theirs}.{name}"] = importlib.import_module(_ours(f"{theirs}.{name}"))


def install():
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
