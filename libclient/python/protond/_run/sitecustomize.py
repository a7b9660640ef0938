# SPDX-License-Identifier: MIT
# `protonctl run` puts this folder first on PYTHONPATH. It is read by every Python of the run, old
# ones too, before anything else: it gives way to the sitecustomize that it hides, and waits for
# torch. Whatever goes wrong here must not touch the program.
import os
import sys


class _Torch(object):
    """Gives the import of torch to protond.torch; finds nothing itself."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(cls)
        try:
            from importlib import util
            here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
            if "protond" not in sys.modules:
                spec = util.spec_from_file_location(
                    "protond", os.path.join(here, "__init__.py"), submodule_search_locations=[here])
                module = util.module_from_spec(spec)
                sys.modules["protond"] = module
                try:
                    spec.loader.exec_module(module)
                except BaseException:
                    sys.modules.pop("protond", None)
                    raise
            from protond import _watch, torch
            torch.install()
            return _watch.find_spec(name, path, target)
        except Exception as e:
            sys.stderr.write("protond: no names from torch: %s\n" % e)
            return None


def _begin():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        sys.modules["sitecustomize"] = ours
    hooks = os.environ.get("PROTOND_HOOK", "").split(",")
    if sys.version_info >= (3, 8) and "torch" in hooks and os.environ.get("PROTOND_TOKEN"):
        sys.meta_path.insert(0, _Torch)


_begin()
