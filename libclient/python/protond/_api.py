# SPDX-License-Identifier: MIT
"""The calls of protond; `import protond` gives them."""
import atexit
import errno
import functools
import inspect
import itertools
import logging
import os
import queue
import sys
import threading
import time

from ._table import BACKENDS as _BACKENDS, FORMATS as _FORMATS
from .flags import flags

if sys.platform.startswith("linux"):
    from . import _native
else:
    from . import _noop as _native

__version__ = _native.version
ALL = _native.ALL
DEFAULT_PROFILE_NAME = "proton"

logger = logging.getLogger("protond")
scope = _native.scope
_enter, _leave, _metrics = _native.enter, _native.leave, _native.metrics


class Error(RuntimeError):
    """A session could not be started, changed or ended; the text says why, and what to do."""


# --- sessions ---------------------------------------------------------------------------------

class SessionError(Error, IndexError):
    """There is no such session, or no such phase of it."""


_DEFAULTS = {"tree": ("hatchet",), "trace": ("chrome_trace",), "both": ("hatchet", "chrome_trace")}


class _Session:
    """A session that this process started and has not finalized."""

    def __init__(self, number, name, context, data, mode, written, switches):
        self.number, self.name, self.context, self.data, self.mode, self.switches = number, name, context, data, mode, switches
        self.written = written  # the format of phases that are written while it goes on, or None
        self.lock = threading.Lock()
        self.phase, self.done = 0, 0  # all phases before `done` are complete
        self.parts = {0: 0}  # phase: the number that the daemon knows it by; without those cleared
        self.in_files = set()  # of these, those that the writer has written
        self.queue = self.writer = None
        self.ends = threading.Event()

    def export(self, phase, form, impatient=False):
        """bytes of a phase, or of all there is (None)."""
        with self.lock:
            part = self.parts.get(phase) if phase is not None else _native.ALL
        if part is None:
            raise SessionError(f"Phase {phase} has no data.")
        with open(_check(_native.export(self.number, part, form, impatient)), "rb") as f:
            return f.read()

    def advance(self):
        with self.lock:
            part = _check(_native.advance_phase(self.number))
            self.phase += 1
            self.parts[self.phase] = part
            logger.debug("session %d, %s: phase %d begins", self.number, self.name, self.phase)
            if _proton is not None:
                _proton.forget_types()
            if self.written and self.queue is None:
                self.queue = queue.SimpleQueue()
                self.writer = threading.Thread(target=self._write_parts, name="protond parts", daemon=True)
                self.writer.start()
            if self.written:
                self.queue.put(self.phase - 1)
            return self.phase

    def is_complete(self, phase, wait_ms=5):
        if phase >= self.phase:
            return False
        ends = self.phase
        if phase >= self.done and _native.flush(wait_ms) == 0:
            self.done = max(self.done, ends)
        return phase < self.done

    def clear(self, phase, up_to):
        with self.lock:
            for one in [p for p in self.parts if p == phase or (up_to and p < phase)]:
                if one == self.phase:
                    self.parts[one] = _check(_native.advance_phase(self.number))
                else:
                    del self.parts[one]
                    self.in_files.discard(one)
            if _proton is not None:
                _proton.forget_types()

    def write(self, phase, form, part=True, impatient=False):
        name = f"{self.name}.part_{phase}" if part else self.name
        _write(f"{name}.{form}", self.export(phase, form, impatient))
        logger.debug("session %d, %s: %s.%s is written", self.number, self.name, name, form)

    def _write_parts(self):
        for phase in iter(self.queue.get, None):
            try:
                while not self.ends.is_set() and not self.is_complete(phase, 20):
                    self.ends.wait(0.2)
                if self.ends.is_set():
                    return  # end() writes what is left
                self.write(phase, self.written)
                with self.lock:
                    self.in_files.update({phase} & self.parts.keys())
            except (Error, OSError) as e:  # finalize() tries again, and says so to its caller
                logger.warning("phase %d of %s is not written yet: %s", phase, self.name, e)

    def formats(self, form):
        """The files that finalize(output_format=form) writes."""
        if form == "chrome_trace" and self.data == "tree":
            raise ValueError(f"Output format not supported: chrome_trace: session {self.number} keeps no timeline; "
                             "start it with data='trace' or 'both'")
        return () if form is None else (form,) if form else _DEFAULTS[self.data]

    def end(self, forms, impatient):
        """Everything is written, and it is stored. impatient: a daemon that does not answer is not waited for."""
        self.ends.set()
        if self.writer is not None:
            self.queue.put(None)
            self.writer.join()
        whole = len(forms) == 1 and self.parts == {0: 0} and self.name not in ("", "-")
        logger.debug("session %d, %s: ends; to be written: %s", self.number, self.name, ", ".join(forms) or "nothing")
        _check(_native.finalize(self.number, forms[0] if whole else None, impatient))
        if whole:
            return
        if self.name in ("", "-"):
            sys.stdout.flush()
            for form in forms:
                sys.stdout.buffer.write(self.export(None, form, impatient))
            sys.stdout.flush()
            return
        failed = None
        for phase, form in itertools.product(sorted(self.parts.keys() - self.in_files), forms):
            try:
                self.write(phase, form, self.phase > 0, impatient)
            except (Error, OSError) as e:  # the others are written all the same
                failed = failed or e
                impatient = impatient or _unanswered(e)
        if failed is not None:
            raise failed


def _write(path, data):
    """The whole file, or none."""
    folder, name = os.path.split(os.fsencode(path))
    temporary = os.path.join(folder, name[:200] + b".tmp-%d" % os.getpid())  # no longer than a name may be
    try:
        with open(temporary, "wb") as f:
            f.write(data)
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise


_sessions = {}  # id: _Session
_proton = None  # _as_proton, once this process knows protond by Proton's name


def _known(session):
    if session not in _sessions:
        raise SessionError(f"Session has not been initialized: {session}")
    return _sessions[session]


def _check(code):
    if code >= 0:
        return code
    text = _native.error() or os.strerror(-code)
    if code == -errno.EINVAL:
        raise ValueError(text)
    error = Error(text)
    error.code = -code
    raise error


def _unanswered(e):
    return getattr(e, "code", None) in (errno.ETIMEDOUT, errno.ENOTCONN)


def _set(name):
    return os.environ.get(name, "").lower() not in ("", "0", "false", "off", "no")


def _disabled():
    return _set("PROTOND_DISABLE") or _set("TRITON_PROTON_DISABLE")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_sessions.clear)  # a child has none


def _recording():
    """Whether anything here is in a session that this process knows of: ours, or that of `protonctl run`."""
    return bool(_sessions) or "PROTOND_TOKEN" in os.environ


_GONE = {"pcsampling": "PC sampling", "instrumentation": "instrumentation inside kernels"}


def _options(context, data, backend, mode, hook):
    """Refuses in words what cannot be; the format of parts that `mode` asks to be written, or None."""
    if context not in ("shadow", "python"):
        raise ValueError(f"Unknown context source: {context}: use shadow or python")
    if data not in _DEFAULTS:
        raise ValueError(f"Unknown data: {data}: use tree, trace or both")
    word, _, rest = str(mode or "").partition(":")
    for gone, words in _GONE.items():
        if word == gone or backend == gone or backend == "cupti_" + gone:
            raise ValueError(f"unsupported mode: {gone}: {words} is not recorded by protond yet; leave it out")
    if backend not in (None, "none", *_BACKENDS):
        raise ValueError(f"Unknown profiler: {backend}: use {', '.join(_BACKENDS)}, or none for CPU scopes only")
    if hook not in (None, "triton", "torch") and not hasattr(hook, "enter"):
        raise ValueError(f"Unsupported hook: {hook}: use triton, torch or a Hook")
    if word not in ("", "periodic_flushing"):
        raise ValueError(f"unsupported mode: {word}: use periodic_flushing, or none")
    key, _, value = rest.partition("=")
    if rest and (word == "" or key != "format"):
        raise ValueError(f"unsupported option key: {key}: use periodic_flushing:format=hatchet")
    written = value or _DEFAULTS[data][0]
    if word and written not in _FORMATS:
        raise ValueError(f"unsupported format: {value}: use {' or '.join(_FORMATS)}")
    if word and written == "chrome_trace" and data == "tree":
        raise ValueError("unsupported format: chrome_trace: data='tree' keeps no timeline; use 'trace' or 'both'")
    return written if word else None


def _nvtx():
    """TRITON_ENABLE_NVTX, by Triton's rule."""
    return (os.environ.get("TRITON_ENABLE_NVTX") or "1").lower() in ("1", "true", "yes", "on", "y")


def _offer_nvtx():
    """NVTX asks this variable at the program's first range for who is to be told of all of them. Another tool that
    is named there stays."""
    library = _native.library()
    if library is not None and _nvtx():
        os.environ.setdefault("NVTX_INJECTION64_PATH", library)


def _module(name):
    """protond.torch or protond.hooks, imported now. They stand on this module, so __init__, above all, says how."""
    raise NotImplementedError(name)


def _ops_wanted(now=False):
    """A session wants operators. now: they are there when this returns; else they are built meanwhile."""
    from . import _ops
    _ops.OPERATORS.wait() if now else _ops.OPERATORS.meanwhile()


def _blocks_wanted(now=False):
    """A session wants allocations, torch's among them."""
    from . import _blocks
    _blocks.BLOCKS.wait() if now else _blocks.BLOCKS.meanwhile()


def _blocks_told():
    """How torch's allocator stands now is recorded."""
    snapshots = sys.modules.get("protond._snapshots")
    if snapshots is not None:
        snapshots.told()
    _native.blocks_told()


def start(name=None, *, context="shadow", data="tree", backend=None, mode=None, hook=None, cpu_off=False, switches=None,
          nvtx_domains=None):
    """Starts a session and makes it active; returns its id, an int >= 0.

    name: also the file, without suffix, that finalize() writes ("proton" when None; "-" or "":
        standard output). The name of a live session gives its id, and activates it.
    context: "shadow" (scopes) or "python".
    data: "tree"; "trace" or "both": the events one by one beside it, for a timeline.
    backend: None (the one that this machine has), "cupti", or "none" (CPU scopes only).
    mode: None, or "periodic_flushing[:format=hatchet|hatchet_msgpack|chrome_trace]": see
        data.advance_phase().
    hook: None, "triton" (launches are named, and carry metrics, as their launch_metadata says),
        "torch" (names what PyTorch does: see protond.torch), or a hooks.Hook.
    cpu_off: scopes cost less and have no CPU time.
    switches: what else is recorded, words parted by commas: "sync" (calls that wait for the GPU),
        "alloc" (memory that the driver and torch give), "ops" (operators of PyTorch: there when this returns, if
        torch was imported), "counters" (what the CPU counts in scopes), "overhead", "queue": see
        docs/options.md.
    nvtx_domains: those whose ranges and marks are in it, parted by commas; "default" is the one without
        a name, "-NAME" all but that. None: all.

    A daemon is started when none runs, unless PROTOND_AUTOSTART=0. Waits until recording has begun,
    at most 10 s. With PROTOND_DISABLE=1 or TRITON_PROTON_DISABLE=1, and in a script under
    `python -m protond`, it does nothing and returns None. Raises ValueError for an option that is
    unknown or not to be had, protond.Error when it cannot record.
    """
    if _disabled() or flags.command_line:
        return None
    written = _options(context, data, backend, mode, hook)
    files = _proton.mode(str(mode or ""), name, _sessions.values()) if _proton is not None else None
    if hook == "torch":
        _module("torch").install()
    elif hook is not None:
        hooks = _module("hooks")
        hook = hooks.LaunchHook() if hook == "triton" else hook
        hooks.HookManager.check(hook)
    _offer_nvtx()
    autostart = os.environ.get("PROTOND_AUTOSTART", "1") != "0"
    path = os.fspath(name) if name is not None else DEFAULT_PROFILE_NAME
    wanted = (switches or "").replace(" ", "").split(",")
    if "ops" in wanted and "protond._ops" in sys.modules:
        sys.modules["protond._ops"].read_options(any("ops" in one.switches for one in _sessions.values()))
    session = _check(_native.start(path or "-", backend, files, data, context, None, cpu_off, autostart, switches, nvtx_domains))
    _native.markers(_nvtx())
    if _native.ops_wanted():
        _ops_wanted(now=True)
    if _native.blocks_wanted():
        _blocks_wanted(now=True)
        if "alloc" in wanted and not any("alloc" in one.switches for one in _sessions.values()):
            _native.blocks_anew()
        _blocks_told()
    new = session not in _sessions
    if new:
        _sessions[session] = _Session(session, path, context, data, str(mode or ""), written, wanted)
    elif _hooks():
        _hooks().activate(session)
    flags.profiling_on = True
    logger.debug("session %d, %s: %s (context %s, data %s, backend %s, mode %s, hook %s)", session, path,
                 "begins" if new else "goes on", context, data, backend, mode, hook)
    if hook not in (None, "torch"):
        try:
            hooks.HookManager.register(hook, session)
        except BaseException:
            if new:
                finalize(session, None)
            raise
    return session


def _hooks():
    """The HookManager, where it was ever used."""
    module = sys.modules.get("protond.hooks")
    return module and module.HookManager


def _with_hooks(session):
    """Of ours: the hooks of `protonctl run` are not a session's here to switch."""
    return () if not _hooks() else sorted(_sessions) if session is None else (session,)


def _only_one(session, what):
    if flags.command_line and session not in (None, 0):
        raise ValueError(f"Only one session can be {what} when running from the command line.")
    if session is not None:
        _known(session)


def activate(session=None):
    """Resumes a session, or all of this process (None). Idempotent."""
    if _disabled():
        return
    _only_one(session, "activated")
    _check(_native.activate(ALL if session is None else session))
    logger.debug("activated: %s", "all sessions" if session is None else f"session {session}")
    for one in _with_hooks(session):
        _hooks().activate(one)


def deactivate(session=None, flushing=False):
    """Pauses a session, or all of this process (None). Idempotent.

    flushing: wait, at most 5 s, until all GPU work launched so far is in it.
    """
    if _disabled():
        return
    _only_one(session, "deactivated")
    _check(_native.deactivate(ALL if session is None else session, _native.FLUSH if flushing else 0))
    logger.debug("deactivated%s: %s", ", flushed" if flushing else "",
                 "all sessions" if session is None else f"session {session}")
    for one in _with_hooks(session):
        _hooks().deactivate(one)


def finalize(session=None, output_format=""):
    """Ends a session, or all of this process (None): it is stored, and NAME.FORMAT is written, over an older one.

    output_format: "hatchet", "pprof", "svg", … (`protonview help export`), "chrome_trace" of data="trace" and "both" alone;
    "": hatchet of a tree, chrome_trace of a trace, both of both; None stores only. A session that has
    begun more phases writes NAME.part_PHASE.FORMAT for each that is not cleared. Waits until the files
    are complete, at most 10 s, for a timeline 120 s; 2 s where no daemon is any more. Once a daemon has not
    answered, the other files are hardly waited for. Ctrl-C ends the wait, and that session. Unknown ids are ignored. ValueError for another
    format: nothing is ended.
    """
    if flags.command_line:
        return
    if output_format not in (None, "", *_FORMATS):
        raise ValueError(f"Unknown output format: {output_format}: use {' or '.join(_FORMATS)}")
    known = sorted(_sessions) if session is None else [session] if session in _sessions else []
    formats = {one: _sessions[one].formats(output_format) for one in known}
    failed, impatient, manager = None, False, _hooks()
    _blocks_told()
    for one in known:
        session = _sessions.pop(one, None)
        if session is None:  # another thread was faster
            continue
        for end in (lambda: session.end(formats[one], impatient), lambda: manager and manager.unregister(one)):
            try:
                end()
            except Exception as e:  # it is over all the same, and so are the others; a hook may raise anything
                failed = failed or e
                impatient = impatient or _unanswered(e)
    flags.profiling_on = bool(_sessions)
    if known and not _sessions and (_proton is not None or not _recording()):
        _leave_open()
    if failed is not None:
        raise failed


class _Calls:
    """profile()'s: its session is active while a function of its runs, or what stands below a `with`."""

    def __init__(self, options):
        self.options, self.open = options, 0
        self.lock = threading.RLock()  # a generator may be collected, and closed, under it

    def __call__(self, func):
        return _decorate(_Calls(self.options), func)

    def __enter__(self):
        with self.lock:
            self.session = start(**self.options)
            self.open += 1
            return self.session

    def __exit__(self, *exc):
        with self.lock:
            self.open -= 1
            if self.open == 0 and self.session is not None:
                deactivate(self.session)


def profile(func=None, *, name=None, context="shadow", data="tree", backend=None, mode=None, hook=None):
    """Decorator, with or without arguments: records each call of the function into a session. With arguments or
    with (), also a context manager, which gives the session's id.

    Of functions, coroutine functions, generators and asynchronous generators: of these two what each
    resumption does. The session is paused when no call runs and no `with` is open, also after one that
    raises; finalize() ends it.
    """
    if isinstance(func, str):
        raise TypeError(f"profile() takes a function; write profile(name={func!r})")
    options = {"name": name, "context": context, "data": data, "backend": backend, "mode": mode, "hook": hook}
    calls = _Calls(options)
    return calls if func is None else calls(func)


# --- scopes -----------------------------------------------------------------------------------

class cpu_timed_scope(scope):
    """A scope with the metric "cpu_time (ns)(exc)": the time between its entry and its exit."""

    def __new__(cls, name, metrics=None):
        if metrics and "cpu_time" in metrics:
            raise ValueError("The metric name 'cpu_time' is reserved.")
        return super().__new__(cls, name, metrics)

    def __init__(self, name, metrics=None):
        self._begins = threading.local()

    def __getstate__(self):  # for copy and pickle: a copy is not open
        return {k: v for k, v in self.__dict__.items() if k != "_begins"}

    def __setstate__(self, state):
        self.__dict__.update(state, _begins=threading.local())

    def __enter__(self):
        super().__enter__()
        self._begins.__dict__.setdefault("stack", []).append(time.perf_counter_ns())
        return self

    def __exit__(self, *exc):
        begins = self._begins.__dict__.get("stack")
        if begins:  # else it was entered on another thread
            _metrics({"cpu_time (ns)(exc)": time.perf_counter_ns() - begins.pop()})
        super().__exit__(*exc)


_open = threading.local()  # .stack: (number, name, is an operation) of enter_scope(); .ends, .gone: see _stack()
_ends = 0  # how often the last session of this process has ended


def _stack():
    """This thread's. Scopes that were entered in a session and are open though all sessions have ended end too,
    for the next session has no part in them. ends: _ends when that was looked at; gone: those that the program
    has not left yet."""
    mine = _open.__dict__
    stack = mine.setdefault("stack", [])
    if mine.setdefault("ends", _ends) != _ends:
        mine["ends"] = _ends
        gone = [one for one in stack if one[0] is not None]
        for _, name, op in reversed(gone):
            _end(name, op)
        stack[:] = [one for one in stack if one[0] is None]
        mine["gone"] = mine.get("gone", 0) + len(gone)
    return stack


def _leave_open():
    global _ends
    _ends += 1
    _stack()


def enter_scope(name, *, triton_op=False, metrics=None):
    """Enters a scope; returns its number, or None while this process knows of no session.

    triton_op: an operation: it names the launches inside, whose own names are not shown.
    """
    stack = _stack()
    number = _native.number() if _recording() else None
    if triton_op:
        _native.op_enter(name)
    else:
        _enter(_native.name(name))
    try:
        if metrics:
            _metrics(metrics)
    except BaseException:
        _end(name, triton_op)
        raise
    stack.append((number, name, triton_op))
    return number


def _end(name, op):
    if op:
        _native.op_exit()
    else:
        _leave(name)


def exit_scope(name=None, *, triton_op=False, metrics=None):
    """Leaves the scope that enter_scope() entered last on this thread; returns its number.

    name: what it must be, else ValueError. IndexError when none is open. Neither while there is no
    session. triton_op is what it was entered with, whatever is said here.
    """
    stack = _stack()
    if not stack and not _recording():
        return None
    if not stack and _open.__dict__.get("gone", 0) > 0:  # it ended with its session
        _open.gone -= 1
        return None
    if not stack:
        raise IndexError("exit_scope(): no scope was entered with enter_scope() on this thread")
    number, entered, op = stack.pop()
    try:
        if metrics:
            _metrics(metrics)
    finally:
        _end(entered, op)
    if number is not None and name is not None and name != entered:
        raise ValueError(f"Scope name mismatch: {name} != {entered}")
    return number


def depth():
    """How many scopes are open on this thread."""
    return _native.depth()


def recording():
    """Whether events of this process are recorded now: to spare what only serves a profile.

    A program that a session is started on is recorded some milliseconds later.
    """
    return _native.recording()


def context_get():
    """Where this thread is, for context_set() on another thread of this process."""
    return _native.context_get()


def context_set(context):
    """Puts this thread where context_get() was; 0 ends that."""
    _native.context_set(context)


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
    if isinstance(func, (classmethod, staticmethod)):
        return type(func)(_decorate(s, func.__func__))
    if inspect.iscoroutinefunction(func):
        return _coroutine(s, func)
    if inspect.isasyncgenfunction(func):
        return _async_generator(s, func)
    if inspect.isgeneratorfunction(func):
        return _generator(s, func)
    return _function(s, func)


_VECTOR_MAX = 64


def _names(name, n):
    """NAME[0], NAME[1], ... of a vector."""
    if not 0 < n <= _VECTOR_MAX:
        raise TypeError(f"metric {name!r}: {n} values: a vector has 1 to {_VECTOR_MAX}")
    base, unit, rest = name.partition(" (")
    return [f"{base}[{i}]{unit}{rest}" for i in range(n)]


def _elements(name, values):
    for one in values:
        if not isinstance(one, (int, float)):
            raise TypeError(f"metric {name!r}: a vector of {type(one).__name__}: of int and float it may be")
    return dict(zip(_names(name, len(values)), values))


def _capturing():
    """Whether this thread's stream is being captured into a CUDA graph: then nothing on the GPU can be read by us."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def _convert(name, value):
    """What is no int, float or str, as one: a tensor or a NumPy number; of a list, a tuple or a tensor of several
    a dict of one each, NAME[0], NAME[1], ... A tensor on a GPU is waited for; while a CUDA graph is captured it is
    recorded at each run of that, and {} is left to record now."""
    if getattr(value, "is_cuda", False) and _capturing():
        if recording():
            from . import _captured
            _captured.put(name, [name] if value.shape in ((), (1,)) else _names(name, value.numel()), value)
        return {}
    if isinstance(value, (list, tuple)):
        return _elements(name, value)
    if hasattr(value, "tolist") and getattr(value, "shape", ()) not in ((), (1,)):
        return _elements(name, value.reshape(-1).tolist())
    if not hasattr(value, "item"):
        raise TypeError(f"metric {name!r}: {type(value).__name__} is no number and no str")
    return value.item()


_native.install(_decorate, _convert)
_native.stacks(os.path.join(os.path.dirname(__file__), ""))
atexit.register(_native.stacks, None)  # the interpreter has none to show while it ends
if _native.version and sys.platform.startswith("linux"):
    from . import _aio, _threads
    _aio.install()
    _threads.install()
    _native.ops_install(_ops_wanted, _blocks_wanted)
    atexit.register(_native.ops_install, None, None)
    atexit.register(_blocks_told)
