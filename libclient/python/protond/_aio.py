# SPDX-License-Identifier: MIT
"""Scopes of asyncio tasks.

A thread's stack of scopes is no use to tasks that take turns on it: each task has its own place in
the tree, which its context variables carry. A task's scope is a node of a linked list, so that a
task made inside it begins where its maker was; it is recorded as a span when it is left. While a
step of a task runs, the thread stands where the task is (protond_context_set), and so does a thread
of an executor that works for it.
"""
import contextvars
import functools

from . import _native, _watch

_node = contextvars.ContextVar("protond", default=None)


class _Node:
    __slots__ = ("parent", "id", "context", "begin")  # begin: None once it has been left

    def __init__(self, parent, name):
        # A task may outlive the scope that it was made in, enter that scope again, and make the next
        # task there: it then stands where the scope stood, not below it.
        context, above = None, parent
        while above is not None and above.begin is None:
            if above.id == name:
                parent, context = above.parent, above.context
            above = above.parent
        if context is None and parent is None:
            _native.context_set(0)  # the first scope stands where the thread was when its loop was started
            context = _native.context_child(_native.context_get(), name)
        elif context is None:
            context = _native.context_child(parent.context, name)
        self.parent = parent
        self.id = name
        self.context = context
        self.begin = _native.span_begin()


def _enter(name):
    node = _Node(_node.get(), name)
    _node.set(node)
    _native.context_set(node.context)


def _leave(name):
    first = node = _node.get()
    while node is not None and node.id != name:
        node = node.parent
    if node is None:  # on the thread's stack, or nowhere
        _native.pop(name)
        return
    while first is not node.parent:  # whatever was left open inside ends with it
        if first.begin is not None:
            _native.span_end(first.context, first.begin)
            first.begin = None
        first = first.parent
    _node.set(first)
    _stand()


def stand_in(context):
    """This task stands there, until stand_out(): as below a scope that has been left, so nothing is recorded of it."""
    node = object.__new__(_Node)
    node.parent, node.id, node.context, node.begin = _node.get(), None, context, None
    _node.set(node)
    _native.context_set(context)
    return node


def stand_out(node):
    """Scopes that were entered there and are open go on, and stand where they stood."""
    if _node.get() is node:
        _node.set(node.parent)
        _stand()


def _stand():
    """The thread stands where its task is."""
    node = _node.get()
    _native.context_set(node.context if node is not None else 0)


def _patch(events):
    """A step of a task is a Handle that runs: the thread stands where the task is, meanwhile."""
    set_loop, run = events._set_running_loop, events.Handle._run

    def _set_running_loop(loop):
        _native.loop(loop is not None)
        _native.context_set(0)
        return set_loop(loop)

    def _run(self):
        node = self._context.get(_node)
        if node is not None:
            _native.context_set(node.context)
        try:
            return run(self)
        finally:  # threads that follow this one do not stay in a task that waits
            _native.context_set(0)

    events._set_running_loop = _set_running_loop
    events.Handle._run = _run
    _native.loop(events._get_running_loop() is not None)
    _watch.when_imported("asyncio.base_events", functools.partial(_patch_loops, events))


def _there(context, func, *args):
    _native.context_set(context)
    try:
        return func(*args)
    finally:
        _native.context_set(0)


def _patch_loops(events, base_events):
    from concurrent.futures import ThreadPoolExecutor
    loops = base_events.BaseEventLoop
    create_task, run_in_executor = loops.create_task, loops.run_in_executor

    @functools.wraps(create_task)
    def _create_task(self, *args, **kwargs):
        task = create_task(self, *args, **kwargs)
        if self._task_factory is not None and events._get_running_loop() is self:
            _stand()  # an eager task has been elsewhere meanwhile
        return task

    @functools.wraps(run_in_executor)
    def _run_in_executor(self, executor, func, *args):
        pool = executor if executor is not None else self._default_executor
        context = _native.context_get()
        if context != 0 and (pool is None or isinstance(pool, ThreadPoolExecutor)):
            return run_in_executor(self, executor, _there, context, func, *args)
        return run_in_executor(self, executor, func, *args)

    loops.create_task, loops.run_in_executor = _create_task, _run_in_executor


def install():
    _native.install_async(_enter, _leave)
    _watch.when_imported("asyncio.events", _patch)
