# SPDX-License-Identifier: MIT
"""`protonctl run --as-proton`: `import triton.profiler` and `import proton` give protond.

For code that cannot be edited. The names stand for the modules themselves: what is patched in one is
patched in the other. Sessions then write files, and refuse metrics, as Proton does.
"""
import importlib
import importlib.machinery
import math
import os
import sys

from . import _api

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
        return importlib.machinery.ModuleSpec(name, _Loader(module), origin=module.__spec__.origin,
                                              is_package=hasattr(module, "__path__"))


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

    def get_code(self, name):
        """What `python -m` runs."""
        return self.spec.loader.get_code(self.spec.name)


# --- what Proton refuses, and what it keeps of a name ---------------------------------------------

_TYPES_MAX = 65536
_types = {}  # (where this thread is, metric): the type that it has there; and a vector's length


def _version():
    """(3, 6) of the Triton that is here; None where none says so."""
    text = getattr(sys.modules.get("triton"), "__version__", None)
    if text is None:
        from importlib import metadata
        try:
            text = metadata.version("triton")
        except metadata.PackageNotFoundError:
            return None
    try:
        return tuple(int(part) for part in text.split(".")[:2])
    except ValueError:
        return None


def _is_36():
    version = _version()
    return version is not None and version < (3, 7)


def forget_types():
    """A new session, or phase, has a new tree."""
    _types.clear()


def mode(asked, name, sessions):
    """Whose files a new session writes; ValueError where Proton would not begin it beside these."""
    path = os.fspath(name) if name is not None else _api.DEFAULT_PROFILE_NAME
    if any(s.mode != asked for s in sessions) and all(s.name != path for s in sessions):
        raise ValueError("Cannot add a session with the same profiler but a different mode than existing sessions: "
                         "finalize them first")
    if not sessions:
        forget_types()
    return "proton-3.6" if _is_36() else "proton"


def _type_of(value):
    if isinstance(value, int):
        return "uint64_t" if _is_36() else "int64_t"
    return "double" if isinstance(value, float) else "std::string"


def _stored(name):
    return name.replace("(exc)", "").replace("(pty)", "").strip()


def _check_length(name, value):
    """Of a vector: a list, or a tensor of several numbers."""
    shape = getattr(value, "shape", ())
    if not _api._native.recording() or not (isinstance(value, (list, tuple)) or shape not in ((), (1,))):
        return
    n = len(value) if isinstance(value, (list, tuple)) else math.prod(shape)
    if len(_types) >= _TYPES_MAX:
        forget_types()
    if _types.setdefault((_api._native.context_get(), _stored(name), "length"), n) != n:
        raise _api.Error(f"Vector metric size mismatch: metric {name!r} has another length here already")


def _check(name, value):
    """The name that a metric is recorded by. TypeError for text, which is no metric since 3.7; protond.Error for
    a number of another type than the metric has there."""
    if not isinstance(value, (int, float, str)):
        _check_length(name, value)
        return name  # what it is made to comes here again
    if isinstance(value, str) and not _is_36():
        raise TypeError(f"metric {name!r}: text is no metric since Triton 3.7")
    stored = _stored(name)
    if _api._native.recording():
        if len(_types) >= _TYPES_MAX:
            forget_types()
        new = _type_of(value)
        current = _types.setdefault((_api._native.context_get(), stored), new)
        if current != new:
            raise _api.Error(f"Metric value type mismatch for valueId 0 ({stored}): current={current}, new={new}")
    # "(inc)" is no word of Proton's, so it stays: of two one is left
    return "(inc)" + name if "(inc)" in stored and stored == name.strip() else name


def install():
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
        _api._proton = sys.modules[__name__]
        _api._native.install_check(_check)
