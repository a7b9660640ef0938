# SPDX-License-Identifier: MIT
"""A session's data while it goes on, and its phases.

A phase is a part of a session that is read, written and cleared by itself: GPU work belongs to the
phase of its launch, a scope to that of its end. Phases are numbered from 0; a session that never
calls advance_phase() has that one. No call here waits for the GPU: what CUPTI has not handed over
yet is missing. All may be called from any thread.
"""
import json

from . import _api


def _of(session):
    if session is None or _api._disabled():
        return None
    if _api.flags.command_line and session != 0:
        raise ValueError("Only one session can be accessed when running from the command line.")
    return _api._known(session)


def get(session=0, phase=0):
    """The tree of a phase as it is now: [root, devices], as json.load() gives a .hatchet file.

    None for no session. Raises protond.Error when the session or the phase has no data.
    """
    s = _of(session)
    return None if s is None else json.loads(s.export(phase, "hatchet"))


def get_msgpack(session=0, phase=0):
    """The same as bytes of MessagePack."""
    s = _of(session)
    return None if s is None else s.export(phase, "hatchet_msgpack")


def advance_phase(session=0):
    """Begins the next phase; returns its number. With mode="periodic_flushing" those before it are
    written to NAME.part_PHASE.FORMAT, on a thread of its own, once they are complete."""
    s = _of(session)
    return None if s is None else s.advance()


def is_phase_complete(session=0, phase=0):
    """Whether nothing more can come to a phase: it is over, and its GPU work has been handed over."""
    s = _of(session)
    return None if s is None else s.is_complete(phase)


def clear(session=0, phase=0, clear_up_to_phase=False):
    """Forgets a phase, or all up to it: get() has no data of it, finalize() writes no file for it.
    The present one goes on, empty. What the daemon has stored stays in its database."""
    s = _of(session)
    if s is not None:
        s.clear(phase, clear_up_to_phase)
