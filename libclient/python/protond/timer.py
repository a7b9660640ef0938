# SPDX-License-Identifier: MIT
"""Times a piece of code, with a warm-up, and names its runs in the tree.

    from protond.timer import Timer

    print(Timer("matmul", sync="events").run(torch.matmul, a, b))

    with Timer("load") as t:       # once
        load()
    print(t.ms)

    step = Timer("step", warmup=10, sync="device")
    for batch in loader:
        with step:                 # the first 10 are warm-up
            train(batch)
    print(step.table())

Works with and without a session, on a GPU or none.
"""
from __future__ import annotations

import array
import collections
import functools
import inspect
import math
import time
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence

from . import _api

METRIC = "timer (ns)(exc)"
WARMUP = 3      # of run(), where nobody says
PENDING = 1024  # runs of wait=False that the GPU has not passed; then the oldest is waited for
UNITS = {"s": 1.0, "ms": 1e3}
SYNCS = ("none", "device", "events")

_native = _api._native
_now = time.perf_counter_ns


def _cuda() -> Optional[Any]:
    """torch.cuda, where it has a GPU; no GPU is initialised by that."""
    try:
        import torch
    except ImportError:
        return None
    return torch.cuda if torch.cuda.is_available() else None


def quantile(values: Sequence[float], q: float) -> float:
    """The q-quantile (0 to 1) of at least one value, in linear interpolation.

    It lies at rank (n - 1) q of the sorted values, the lowest having rank 0; between two ranks on
    the straight line from one to the other (type 7 of Hyndman and Fan, the default of NumPy).
    """
    ordered = sorted(values)
    rank = (len(ordered) - 1) * q
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


class _Host:
    """The clock of the CPU; with `wait`, that of a CPU that waits for the GPU first."""
    __slots__ = ("wait", "begin", "end")

    def __init__(self, wait: Optional[Callable[[], None]]) -> None:
        self.wait = wait

    def start(self) -> None:
        if self.wait is not None:
            self.wait()
        self.begin = _now()

    def stop(self) -> None:
        if self.wait is not None:
            self.wait()
        self.end = _now()

    def ns(self) -> int:
        return self.end - self.begin


class _Events:
    """A pair of events in the current stream: the GPU's own clock, in steps of about 0.5 us."""
    __slots__ = ("begin", "end")

    def __init__(self, cuda: Any) -> None:
        self.begin, self.end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)

    def start(self) -> None:
        self.begin.record()

    def stop(self) -> None:
        self.end.record()

    def passed(self) -> bool:
        return bool(self.end.query())

    def ns(self) -> int:
        """Waits until the GPU is there."""
        self.end.synchronize()
        return round(self.begin.elapsed_time(self.end) * 1e6)


class Timer:
    """Times runs of a function, of a block, or of a decorated function.

    name: the scope that each timed run is, with the metric "timer (ns)(exc)"; those of the warm-up
        are in a scope "NAME warm-up" and count nowhere. None: the function's name, else "timer".
    warmup: runs that do not count: of run() those it makes first, of `with` and of a decorated
        function the first ones. One that raises is no run. None: 3 of run(), none of the others, so
        that `with Timer() as t:` is one run.
    repeats: the runs that run() makes and counts.
    sync: what is measured.
        "none": the time on the CPU, of which launches are a part and kernels are not.
        "device": from an idle GPU to an idle GPU, on the CPU's clock (torch.cuda.synchronize()
            before and after). The same as "none" where torch has no GPU.
        "events": the time on the GPU between two events of torch.cuda in the current stream, without
            CUPTI. Idle time of the stream in between is in it, work on other streams is not. run()
            keeps the stream filled and waits once, in the last run; `with` waits at its end.
    wait: False: with "events" `with` and a decorated function do not wait. A run's time is taken when
        the GPU has passed it, at the latest when a result is asked for; its metric is then a later
        run's of the same name, and that of the last ones is in no tree.
    metrics: what else to record at each timed run, as in protond.scope.

    Results are in seconds, None while there are too few runs; `last` is the last run's, `ms` the same in
    milliseconds, and as_dict("ms"), table("ms") have all of them so. Timers may stand inside of others, and a
    timer inside of itself: each run has its own time, with what is inside. `source` says where they come from:
    "host clock", "host clock, GPU waited for" or "cuda events".

    Raises ValueError for options that make no sense, protond.Error for "events" where torch has no
    GPU. A timer is for one thread at a time; 8 bytes are kept for each run.
    """

    unit = "s"

    def __init__(self, name: Optional[str] = None, warmup: Optional[int] = None, repeats: int = 10, sync: str = "none",
                 metrics: Optional[Dict[str, Any]] = None, wait: bool = True) -> None:
        if sync not in SYNCS:
            raise ValueError(f"sync={sync!r}: use one of {', '.join(SYNCS)}")
        if (warmup is not None and warmup < 0) or repeats < 1:
            raise ValueError(f"warmup={warmup}, repeats={repeats}: at least 0 and 1")
        self.name, self.warmup, self.repeats, self.sync, self.metrics = name, warmup, repeats, sync, metrics
        self.wait = wait or sync != "events"
        self._cuda = self._find_cuda()
        self.reset()

    def _find_cuda(self) -> Optional[Any]:
        cuda = _cuda() if self.sync != "none" else None
        if cuda is None and self.sync == "events":
            raise _api.Error('Timer(sync="events") needs a GPU that torch can use (torch.cuda.is_available() says no): '
                             'use sync="none" for time on the CPU')
        return cuda

    @property
    def source(self) -> str:
        if self._cuda is None:
            return "host clock"
        return "cuda events" if self.sync == "events" else "host clock, GPU waited for"

    def reset(self) -> None:
        """Forgets all runs; the next ones are warm-up again."""
        self._ns = array.array("q")
        self._warmed = 0
        self._passing: Deque[Any] = collections.deque()  # events of runs that the GPU has not passed yet
        self._open: List[Any] = []  # (scope, clock, warm-up?, depth inside) of the blocks being run

    # --- running --------------------------------------------------------------------------------

    def _clock(self) -> Any:
        if self.sync == "events":
            return _Events(self._cuda)
        return _Host(self._cuda.synchronize if self._cuda is not None else None)

    def _scope(self, warm: bool) -> Any:
        name = self.name or "timer"
        return _api.scope(name + " warm-up") if warm else _api.scope(name, self.metrics)

    def _keep(self, clocks: Sequence[Any], depth: int) -> None:
        """Into the results, and into the run's scope: what it left open inside is closed first."""
        ns = [clock.ns() for clock in clocks]
        self._ns.extend(ns)
        _native.unwind(depth)
        _api._metrics({METRIC: sum(ns)})

    def _passed(self, all_of_them: bool = False) -> List[Any]:
        """Those that the GPU has passed, in the order of the runs; or all, waited for."""
        passed = []
        while self._passing and (all_of_them or len(self._passing) > PENDING or self._passing[0].passed()):
            passed.append(self._passing.popleft())
        return passed

    def _all(self) -> "array.array[int]":
        """Each run's ns."""
        if self._passing:
            self._ns.extend(clock.ns() for clock in self._passed(True))
        return self._ns

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> "Timer":
        """Calls function(*args, **kwargs) warmup + repeats times; returns this timer.

        Runs are added to those there are. An exception of the function ends it and is passed on; with
        "events" no run of this call counts then.
        """
        self._named(function)
        warmup = WARMUP if self.warmup is None else self.warmup
        if warmup:
            with self._scope(True):
                for _ in range(warmup):
                    function(*args, **kwargs)
                    self._warmed += 1
        scope = self._scope(False)
        waiting: List[_Events] = []
        for i in range(self.repeats):
            clock = self._clock()
            with scope:
                depth = _native.depth()
                clock.start()
                function(*args, **kwargs)
                clock.stop()
                if self.sync != "events":
                    self._keep((clock,), depth)
                    continue
                waiting.append(clock)
                if i == self.repeats - 1:
                    self._keep(waiting, depth)
        return self

    def __enter__(self) -> "Timer":
        warm = self._warmed < (self.warmup or 0)
        scope, clock = self._scope(warm), self._clock()
        scope.__enter__()
        self._open.append((scope, clock, warm, _native.depth()))
        clock.start()
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        scope, clock, warm, depth = self._open.pop()
        try:
            if kind is not None:
                return
            clock.stop()
            if warm:
                self._warmed += 1
            elif self.wait:
                self._keep((clock,), depth)
            else:
                self._passing.append(clock)
                self._keep(self._passed(), depth)
        finally:
            scope.__exit__(kind, value, traceback)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """As a decorator: each call is a run. TypeError for what returns before it has run."""
        if (inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)
                or inspect.isasyncgenfunction(function)):
            raise TypeError(f"{function!r} returns before it has run: use `with timer:` inside")
        self._named(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)
        return wrapper

    def _named(self, function: Callable[..., Any]) -> None:
        if self.name is None:
            self.name = getattr(function, "__qualname__", None) or type(function).__qualname__

    # --- results --------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """How many runs count."""
        return len(self._all())

    @property
    def last(self) -> Optional[float]:
        """Of the last run that counts."""
        return self._all()[-1] / 1e9 if self._all() else None

    @property
    def ms(self) -> Optional[float]:
        """`last`, in milliseconds."""
        return self._all()[-1] / 1e6 if self._all() else None

    def samples(self) -> List[float]:
        """Each run that counts, in the order that they were made, in seconds."""
        return [ns / 1e9 for ns in self._all()]

    @property
    def mean(self) -> Optional[float]:
        return sum(self._all()) / self.n / 1e9 if self._all() else None

    @property
    def std(self) -> Optional[float]:
        """The standard deviation of the sample: over n - 1."""
        if self.n < 2:
            return None
        mean = sum(self._all()) / self.n
        return math.sqrt(sum((ns - mean) ** 2 for ns in self._all()) / (self.n - 1)) / 1e9

    @property
    def min(self) -> Optional[float]:
        return min(self._all()) / 1e9 if self._all() else None

    @property
    def max(self) -> Optional[float]:
        return max(self._all()) / 1e9 if self._all() else None

    @property
    def p50(self) -> Optional[float]:
        """The median: see quantile()."""
        return quantile(self._all(), 0.5) / 1e9 if self._all() else None

    @property
    def p99(self) -> Optional[float]:
        """See quantile(): of fewer than 100 runs it lies between the two slowest."""
        return quantile(self._all(), 0.99) / 1e9 if self._all() else None

    def as_dict(self, unit: str = "s") -> Dict[str, Any]:
        """All of it, fit for JSON; times in seconds, or in "ms"."""
        if unit not in UNITS:
            raise ValueError(f"unit={unit!r}: use one of {', '.join(UNITS)}")
        times = {key: getattr(self, key) for key in ("mean", "std", "min", "max", "p50", "p99", "last")}
        return {"name": self.name or "timer", "source": self.source, "unit": unit, "warmup": self._warmed, "n": self.n,
                **{key: None if v is None else v * UNITS[unit] for key, v in times.items()}}

    def _head(self) -> str:
        return f"{self.name or 'timer'}: {self.n} runs after {self._warmed} of warm-up, {self.source}"

    def __str__(self) -> str:
        """One line."""
        if not self.n:
            return self._head()
        times = [f"{key} {_text(getattr(self, key))}" for key in ("mean", "std", "min", "p50", "p99", "max")]
        return f"{self._head()}: {', '.join(times)}"

    def table(self, unit: Optional[str] = None) -> str:
        """A line for each result; unit: "s" or "ms", else what fits each."""
        times = self.as_dict(unit or "s")
        rows = [f"  {key:4}  {_in(times[key], unit) if unit else _text(times[key]):>10}"
                for key in ("mean", "std", "min", "p50", "p99", "max")]
        return "\n".join([self._head(), *rows])


def _in(value: Optional[float], unit: str) -> str:
    return "-" if value is None else f"{value:.6g} {unit}"


def _text(seconds: Optional[float]) -> str:
    if seconds is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.4g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
