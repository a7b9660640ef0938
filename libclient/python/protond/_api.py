# SPDX-License-Identifier: MIT
"""The calls of protond; `import protond` gives them."""
import errno
import functools
import inspect
import itertools
import os
import sys
import threading
import time

if sys.platform.startswith("linux"):
    from . import _native
else:
    from . import _noop as _native

__version__ = _native.version
ALL = _native.ALL
DEFAULT_PROFILE_NAME = "proton"

scope = _native.scope
_enter, _leave, _metrics = _native.enter, _native.leave, _native.metrics


class Error(RuntimeError):
    """A session could not be started, changed or ended; the text says why, and what to do."""


# --- sessions ---------------------------------------------------------------------------------

_sessions = set()  # ids that this process started and has not finalized


def _check(code):
    if code >= 0:
        return code
    text = _native.error() or os.strerror(-code)
    if code == -errno.EINVAL:
        raise ValueError(text)
    raise Error(text)


def _disabled():
    return os.environ.get("PROTOND_DISABLE", "") not in ("", "0")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_sessions.clear)  # a child has none


def _recording():
    """Whether anything here is in a session that this process knows of: ours, or that of `protonctl run`."""
    return bool(_sessions) or "PROTOND_TOKEN" in os.environ


def start(name=None, *, context="shadow", data="tree", backend=None, mode=None, hook=None, cpu_off=False):
    """Starts a session and makes it active; returns its id, an int >= 0.

    name: also the file, without suffix, that finalize() writes ("proton" when None). The name of a
        live session gives its id, and activates it.
    context: "shadow" (scopes) or "python".   data: "tree", "trace" or "both".
    backend: None (the one that this machine has), "cupti", or "none" (CPU scopes only).
    cpu_off: scopes cost less and have no CPU time.
    mode: None.   hook: None, "torch" (names what PyTorch does: see protond.torch) or "triton".

    A daemon is started when none runs, unless PROTOND_AUTOSTART=0. Waits until recording has begun,
    at most 10 s. With PROTOND_DISABLE=1 it does nothing and returns None. Raises ValueError for an
    unknown option, protond.Error when it cannot record.
    """
    if _disabled():
        return None
    if hook == "torch":
        from . import torch
        torch.install()
        hook = None
    autostart = os.environ.get("PROTOND_AUTOSTART", "1") != "0"
    path = os.fspath(name) if name is not None else DEFAULT_PROFILE_NAME
    session = _check(_native.start(path, backend, mode, data, context, hook, cpu_off, autostart))
    _sessions.add(session)
    return session


def activate(session=None):
    """Resumes a session, or all of this process (None). Idempotent."""
    _check(_native.activate(ALL if session is None else session))


def deactivate(session=None, flushing=False):
    """Pauses a session, or all of this process (None). Idempotent.

    flushing: wait, at most 5 s, until all GPU work launched so far is in it.
    """
    _check(_native.deactivate(ALL if session is None else session, _native.FLUSH if flushing else 0))


def finalize(session=None, output_format=""):
    """Ends a session, or all of this process (None): it is stored, and NAME.hatchet is written.

    output_format: "" or "hatchet"; None stores only. Waits until the file is complete, at most 10 s.
    Unknown ids are ignored.
    """
    known = sorted(_sessions) if session is None else [session] if session in _sessions else []
    failed = None
    for one in known:
        try:
            _check(_native.finalize(one, "hatchet" if output_format == "" else output_format))
        except Error as e:  # it is over all the same, and so are the others
            failed = failed or e
        _sessions.discard(one)
    if failed is not None:
        raise failed


def profile(func=None, *, name=None, context="shadow", data="tree", backend=None, mode=None, hook=None):
    """Decorator, with or without arguments: records each call of the function into a session.

    The session is paused after each call, also one that raises; finalize() ends it.
    """
    if func is None:
        return functools.partial(profile, name=name, context=context, data=data, backend=backend,
                                 mode=mode, hook=hook)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        session = start(name, context=context, data=data, backend=backend, mode=mode, hook=hook)
        try:
            return func(*args, **kwargs)
        finally:
            if session is not None:
                deactivate(session)
    return wrapper


# --- scopes -----------------------------------------------------------------------------------

class cpu_timed_scope(scope):
    """A scope with the metric "cpu_time (ns)(exc)": the time between its entry and its exit."""

    def __new__(cls, name, metrics=None):
        if metrics and "cpu_time" in metrics:
            raise ValueError("The metric name 'cpu_time' is reserved.")
        return super().__new__(cls, name, metrics)

    def __init__(self, name, metrics=None):
        self._begins = threading.local()

    def __enter__(self):
        super().__enter__()
        self._begins.__dict__.setdefault("stack", []).append(time.perf_counter_ns())
        return self

    def __exit__(self, *exc):
        begins = self._begins.__dict__.get("stack")
        if begins:  # else it was entered on another thread
            _metrics({"cpu_time (ns)(exc)": time.perf_counter_ns() - begins.pop()})
        super().__exit__(*exc)


_ids = itertools.count()
_open = threading.local()  # .stack: (number, name) of enter_scope()


def enter_scope(name, *, metrics=None):
    """Enters a scope; returns its number, or None while this process knows of no session."""
    number = next(_ids) if _recording() else None
    _enter(_native.name(name))
    try:
        if metrics:
            _metrics(metrics)
    except BaseException:
        _leave(name)
        raise
    _open.__dict__.setdefault("stack", []).append((number, name))
    return number


def exit_scope(name=None, *, metrics=None):
    """Leaves the scope that enter_scope() entered last on this thread; returns its number.

    name: what it must be, else ValueError. IndexError when none is open. Neither while there is no
    session.
    """
    stack = _open.__dict__.get("stack", [])
    if not stack and not _recording():
        return None
    if not stack:
        raise IndexError("exit_scope(): no scope was entered with enter_scope() on this thread")
    number, entered = stack.pop()
    try:
        if metrics:
            _metrics(metrics)
    finally:
        _leave(entered)
    if number is not None and name is not None and name != entered:
        raise ValueError(f"Scope name mismatch: {entered} != {name}")
    return number


def depth():
    """How many scopes are open on this thread."""
    return _native.depth()


def recording():
    """Whether events of this process are recorded now: to spare what only serves a profile.

    A forked child, or a program that a session is started on, is recorded some milliseconds later.
    """
    return _native.recording()


def context_get():
    """Where this thread is, for context_set() on another thread of this process."""
    return _native.context_get()


def context_set(context):
    """Puts this thread where context_get() was; 0 ends that."""
    _native.context_set(context)


class state:
    """A state stands last in the path, below all scopes, whatever is entered inside it.

    A context manager, and a decorator as `scope` is. Nested: the inner one is shown, the outer comes
    back.
    """
    __slots__ = ("name", "_id")

    def __init__(self, name):
        self.name = name
        self._id = _native.name(name)

    def __enter__(self):
        _native.state_enter(self._id)
        return self

    def __exit__(self, *exc):
        _native.state_exit()

    def __call__(self, func):
        return _decorate(self, func)


def enter_state(name):
    """Enters a state: see `state`."""
    _native.state_enter(name)


def exit_state():
    """Leaves the innermost state."""
    _native.state_exit()


# --- what the extension leaves to Python --------------------------------------------------------

def _generator(s, func):
    """Each resumption is one scope: what the caller does in between does not stand in it."""
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        gen = func(*args, **kwargs)
        step, value = gen.send, None
        while True:
            try:
                with s:
                    item = [step(value)]
            except StopIteration as end:
                return end.value
            finally:
                value = None
            try:
                value = yield item.pop()  # what is given is not held on to
                step = gen.send
            except BaseException as e:  # GeneratorExit too: it may have something to do, or refuse
                step, value = gen.throw, e
    return wrapper


def _async_generator(s, func):
    @functools.wraps(func)
    async def wrapper(*args, **kwargs):
        gen = func(*args, **kwargs)
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)  # the loop ends the wrapper, and that ends this one
        try:
            first = gen.asend(None)
        finally:
            sys.set_asyncgen_hooks(*hooks)
        step, value = (lambda _: first), None
        while True:
            try:
                with s:
                    item = [await step(value)]
            except StopAsyncIteration:
                return
            finally:
                value = None
            try:
                value = yield item.pop()
                step = gen.asend
            except BaseException as e:
                step, value = gen.athrow, e
    return wrapper


def _coroutine(s, func):
    @functools.wraps(func)
    async def wrapper(*args, **kwargs):
        with s:
            return await func(*args, **kwargs)
    return wrapper


def _function(s, func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        with s:
            return func(*args, **kwargs)
    return wrapper


def _decorate(s, func):
    if inspect.iscoroutinefunction(func):
        return _coroutine(s, func)
    if inspect.isasyncgenfunction(func):
        return _async_generator(s, func)
    if inspect.isgeneratorfunction(func):
        return _generator(s, func)
    return _function(s, func)


def _convert(name, value):
    """A tensor or a NumPy number as int or float; a tensor on a GPU is waited for."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"metric {name!r}: {type(value).__name__} is no number and no str")
    return item()


_native.install(_decorate, _convert)
if _native.version and sys.platform.startswith("linux"):
    from . import _aio
    _aio.install()
