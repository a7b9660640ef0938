# SPDX-License-Identifier: MIT
"""The commands protond, protonctl and protonview of an installed wheel: each becomes the program of its name.

Not in the package: importing that would attach this process, which is about to be another, to the profiler.
"""
import os
import signal
import sys
from importlib.machinery import PathFinder


def _become(name):
    package = PathFinder.find_spec("protond").submodule_search_locations[0]
    for folder in ("bin", "../../../../bin"):  # in a wheel; in a build
        path = os.path.join(package, folder, name)
        if os.access(path, os.X_OK):
            for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, not by who called
                signal.signal(ignored, signal.SIG_DFL)
            os.execv(path, [name, *sys.argv[1:]])
    sys.exit(f"{name}: the program is not in {package}; install protond again")


def protond():
    _become("protond")


def protonctl():
    _become("protonctl")


def protonview():
    _become("protonview")
