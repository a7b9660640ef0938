# SPDX-License-Identifier: MIT
"""A request: a span of time that is on no thread's stack."""
import sys
import threading

from . import _api

_native = _api._native
_stood = threading.local()  # .stack: the contexts that this thread was put into


def _loop():
    """_aio, where this thread runs an asyncio loop: there a task's place is its context variable's."""
    asyncio = sys.modules.get("asyncio.events")
    if asyncio is None or asyncio._get_running_loop() is None:
        return None
    from . import _aio
    return _aio


class _Here:
    __slots__ = ("context", "node")

    def __init__(self, context):
        self.context, self.node = context, None

    def __enter__(self):
        aio = _loop()
        if aio is not None:
            self.node = aio.stand_in(self.context)
            return self
        _stood.__dict__.setdefault("stack", []).append(self.context)
        _native.context_set(self.context)
        return self

    def __exit__(self, *exc):
        if self.node is not None:
            from . import _aio
            _aio.stand_out(self.node)
            self.node = None
            return
        stack = _stood.__dict__.get("stack") or [0]
        stack.pop()
        _native.context_set(stack[-1] if stack else 0)


class request:
    """What begins on one thread or asyncio task and ends on another: of a server, a pipeline, a queue.

        r = protond.request("generate")           # begins where this thread stands
        queue.put((r, prompt))
        ...
        with r.here():                            # on any thread, in any task: what is done here is the request's
            tokens = generate(prompt)
        r.end({"tokens": len(tokens)})            # by whoever is last; a second end() is ignored

    As `with` or `async with` it begins, is stood in, and ends there. Each is one span of its name: the tree has how many
    and how long (`protonview flat NAME` has p50 and p99), the timeline a row beside the threads, exports asynchronous
    events, and `protonview steps NAME --scope generate` each of them. One that never ends is not recorded. Names are few: of
    many, the surplus counts as the scope that they began in.

    metrics: numbers of it; those given to end() are added to them. All are recorded as it ends.
    """

    __slots__ = ("name", "metrics", "_context", "_begin", "_here")

    def __init__(self, name, metrics=None):
        self.name, self.metrics, self._here = name, dict(metrics or {}), None
        self._context = _native.context_child(_native.context_get(), _native.name(name))
        self._begin = [_native.span_begin()]  # empty: it has ended

    def here(self):
        """A `with` in which this thread or task stands in the request; also more than one at once, and inside of others."""
        return _Here(self._context)

    def end(self, metrics=None):
        """Ends it, on any thread; returns whether it had not ended before."""
        try:
            begin = self._begin.pop()
        except IndexError:
            return False
        told = {**self.metrics, **(metrics or {})}
        if told and _native.recording():
            with self.here():
                _api._metrics(told)
        _native.span_end(self._context, begin)
        return True

    def __enter__(self):
        self._here = self.here().__enter__()
        return self

    def __exit__(self, *exc):
        here, self._here = self._here, None
        if here is not None:
            here.__exit__(*exc)
        self.end()

    async def __aenter__(self):
        return self.__enter__()

    async def __aexit__(self, *exc):
        self.__exit__(*exc)
