# SPDX-License-Identifier: MIT
# `protonctl run` puts this folder first on PYTHONPATH. It is read by every Python of the run, old
# ones too, before anything else: it gives way to the sitecustomize that it hides, and waits for
# torch and triton. Whatever goes wrong here must not touch the program.
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_hooks = [h for h in os.environ.get("PROTOND_HOOK", "").split(",") if h in ("torch", "triton")]
_searching = set()  # threads that ask the other finders for one of them just now


class _Waiter(object):
    """Sees the import of torch and triton; finds nothing itself. Stays on sys.meta_path: another thread may be
    walking along it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _hooks:
            return None
        thread = _get_ident()
        if thread in _searching:
            return None
        _searching.add(thread)
        try:
            spec = _find(name, path, target)
        finally:
            _searching.discard(thread)
        loader = getattr(spec, "loader", None)
        if hasattr(loader, "exec_module") and not isinstance(loader, type):
            _wrap(loader)
        return spec


def _find(name, path, target):
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        spec = find(name, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None


def _wrap(loader):
    execute = loader.exec_module

    def exec_module(module):
        execute(module)
        if module.__name__ in _hooks:
            loader.__dict__.pop("exec_module", None)
            _name_it(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass


def _package():
    """protond, from beside this folder and with no change to sys.path."""
    from importlib import util
    above = os.path.dirname(_here)
    if "protond" not in sys.modules:
        spec = util.spec_from_file_location(
            "protond", os.path.join(above, "__init__.py"), submodule_search_locations=[above])
        sys.modules["protond"] = util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules["protond"])
        except BaseException:
            del sys.modules["protond"]
            raise


def _say(text):
    """As protond._say, which may be what is not there."""
    try:
        sys.stderr.write("protond: %s\n" % text)
    except (AttributeError, OSError, ValueError):
        pass


def _name_it(module):
    """protond.torch or protond.hooks takes over."""
    try:
        _package()
        if module.__name__ == "triton":
            from protond import hooks
            hooks.HookManager.register(hooks.LaunchHook(), "run")
            return
        from protond import _watch, torch
        torch.install()  # waits, for the import of torch is not over yet
        _watch.imported("torch", module)
    except Exception as e:
        _say("no names from %s: %s" % (module.__name__, e))


def _stacks():
    try:
        _package()
    except Exception as e:
        _say("launches have no Python stack: %s" % e)


def _as_proton():
    try:
        _package()
        from protond import _as_proton
        _as_proton.install()
    except Exception as e:
        _say("import triton.profiler is Triton's own: %s" % e)


def _wanted():
    return os.environ.get("PROTOND_TOKEN") and os.environ.get("PROTOND_DISABLE", "") in ("", "0")


def _begin():
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != _here]
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as e:
        if getattr(e, "name", "sitecustomize") != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = ours


if sys.version_info >= (3, 8) and _wanted():
    from _thread import get_ident as _get_ident
    if _hooks:
        sys.meta_path.insert(0, _Waiter)
    if os.environ.get("PROTOND_STACKS", "") == "1":
        _stacks()
    if os.environ.get("PROTOND_AS_PROTON", "") == "1":
        _as_proton()
_begin()
