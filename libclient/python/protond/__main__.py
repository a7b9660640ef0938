# SPDX-License-Identifier: MIT
"""python -m protond [options] script.py|pytest [arguments]: a program as one session, in this process.

`protonctl run` does more: it sees other processes too, and the death of this one.
"""
import argparse
import os
import runpy
import sys

from . import _api
from ._table import BACKENDS
from .flags import flags


class _ListBackends(argparse.Action):
    def __call__(self, parser, *rest):
        print("\n".join((*BACKENDS, "none")))
        parser.exit()


def _arguments():
    p = argparse.ArgumentParser(prog="python -m protond", description="Records a script or a pytest run.")
    p.add_argument("--list-backends", nargs=0, action=_ListBackends, help="what -b may be, a line each; then ends")
    p.add_argument("-n", "--name", help="of the session, and of the file that is written")
    p.add_argument("-b", "--backend", help="cupti or none; left out: what the machine has")
    p.add_argument("-c", "--context", default="shadow", choices=["shadow", "python"])
    p.add_argument("-m", "--mode")
    p.add_argument("-d", "--data", default="tree", choices=["tree", "trace", "both"])
    p.add_argument("-k", "--hook", choices=["triton", "torch"])
    p.add_argument("target", metavar="script.py|pytest")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    return p.parse_args()


def _run(target, arguments):
    """The exit status of the target, as a process of its own would have."""
    sys.argv = [target, *arguments]
    try:
        if os.path.basename(target) == "pytest":
            import pytest
            return int(pytest.main(arguments))
        sys.path[0] = os.path.dirname(os.path.abspath(target))
        runpy.run_path(target, run_name="__main__")
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int):
            return e.code or 0
        print(e.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def main():
    a = _arguments()
    if _api._set("PROTOND_AS_PROTON"):
        from . import _as_proton
        _as_proton.install()
    if os.path.basename(a.target) != "pytest" and not os.path.isfile(a.target):
        sys.exit(f"protond: {a.target} is no file; what is recorded is script.py or pytest, after the options")
    try:
        _api.start(a.name, context=a.context, data=a.data, backend=a.backend, mode=a.mode, hook=a.hook)
    except (ValueError, _api.Error) as e:
        sys.exit(f"protond: {e}")
    flags.command_line = True  # the script's own sessions are this one
    status = _run(a.target, a.arguments)
    flags.command_line = False
    try:
        _api.finalize()
    except _api.Error as e:
        sys.exit(f"protond: {e}")
    sys.exit(status)


if __name__ == "__main__":
    main()
