# SPDX-License-Identifier: MIT
"""Scopes of asyncio tasks.

A thread's stack of scopes is no use to tasks that take turns on it: each task has its own place in
the tree, which its context variables carry. A task's scope is a node of a linked list, so that a
task made inside it begins where its maker was; it is recorded as a span when it is left. While a
step of a task runs, the thread stands where the task is (protond_context_set).
"""
import contextvars
import sys

from . import _native, _watch

_node = contextvars.ContextVar("protond", default=None)


class _Node:
    __slots__ = ("parent", "id", "context", "begin")

    def __init__(self, parent, name):
        self.parent = parent
        self.id = name
        # The first scope of a task stands where the thread was when the loop was started.
        above = parent.context if parent is not None else _native.context_get()
        self.context = _native.context_child(above, name)
        self.begin = _native.span_begin()


def _enter(name):
    node = _Node(_node.get(), name)
    _node.set(node)
    _native.context_set(node.context)


def _leave(name):
    first = node = _node.get()
    while node is not None and node.id != name:
        node = node.parent
    if node is None:
        return
    while first is not node.parent:  # whatever was left open inside ends with it
        _native.span_end(first.context, first.begin)
        first = first.parent
    _node.set(first)
    _native.context_set(first.context if first is not None else 0)


def _patch(events):
    """A step of a task is a Handle that runs: the thread stands where the task is, meanwhile."""
    set_loop, run = events._set_running_loop, events.Handle._run

    def _set_running_loop(loop):
        _native.loop(loop is not None)
        _native.context_set(0)
        return set_loop(loop)

    def _run(self):
        node = self._context.get(_node)
        _native.context_set(node.context if node is not None else 0)
        return run(self)

    events._set_running_loop = _set_running_loop
    events.Handle._run = _run


def install():
    _native.install_async(_enter, _leave)
    if "asyncio.events" in sys.modules:
        _patch(sys.modules["asyncio.events"])
    else:
        _watch.when_imported("asyncio.events", _patch)
