# SPDX-License-Identifier: MIT
"""threading's names as the kernel's, so that a timeline's lanes have them: Python 3.14 does it itself."""
import sys
import threading

from . import _native


def install():
    name_it = getattr(threading.Thread, "_set_native_id", None)
    if sys.version_info >= (3, 14) or name_it is None:
        return

    def _set_native_id(self):  # the first thing that a thread does of itself
        name_it(self)
        if self is not threading.main_thread() and not isinstance(self, threading._DummyThread):  # a library's own
            _native.thread_name(str(self.name).encode(errors="replace")[:15].decode(errors="ignore").encode())

    threading.Thread._set_native_id = _set_native_id
