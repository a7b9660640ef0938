# SPDX-License-Identifier: MIT
"""Where protond's programs are: beside this package, else in PATH."""
import os
import shutil

from . import _api


def tool(name: str) -> str:
    """The path of one of protond's programs: "protonview", "protonctl" or "protond".

    Looked for in this order: the package's own bin (a wheel), the bin of the build or of the
    installation that the package lies in (PREFIX/lib/protond/python/protond), PATH. Raises
    protond.Error when it is in none of them.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    prefix = os.path.normpath(os.path.join(here, *[os.pardir] * 4))
    beside = [os.path.join(here, "bin"), os.path.join(prefix, "bin")]
    path = shutil.which(name, path=os.pathsep.join(beside)) or shutil.which(name)
    if path is None:
        raise _api.Error(f"{name} is neither in {' nor in '.join(beside)} nor in PATH: "
                         "put the bin folder of protond's build or installation in PATH")
    return path
