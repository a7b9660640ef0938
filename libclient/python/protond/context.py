# SPDX-License-Identifier: MIT
"""Where this thread is."""
import sys

from . import _api


def depth(session=0):
    """How deep this thread is: open scopes, or Python frames for a session with context="python".

    None while nothing is recorded. session: its id; None asks for scopes.
    """
    s = _api._sessions.get(session)
    if s is None and not _api._recording():
        return None
    if s is None or s.context != "python":
        return _api.depth()
    frame, n = sys._getframe(1), 0
    while frame is not None:
        frame, n = frame.f_back, n + 1
    return n
