# SPDX-License-Identifier: MIT
"""The memory that PyTorch's CUDA allocator holds: at the end of each step, and of scopes.

    from protond import memory

    memory.track()                      # from now on
    with memory.scope("evaluate"):
        ...
    memory.slope()                      # bytes a step that stay: a leak grows along a line
    memory.fragments()                  # what the allocator keeps and tensors cannot have
    memory.to_csv("memory.csv")
    memory.untrack()

A step and a memory.scope then have three metrics, properties of which the last value stands:

    allocated (bytes)   in tensors, at the end
    reserved (bytes)    taken from the GPU by the allocator, at the end
    peak (bytes)        the highest of "allocated" from beginning to end

Of a process with tensors on several GPUs these are sums over its GPUs, of peaks too, which is at
least the peak of the sum; each GPU stands besides as "allocated cuda:1 (bytes)" and so on.

torch keeps one peak for the process. To know that of each scope it is reset where one begins or
ends (torch.cuda.reset_peak_memory_stats(), which resets that of "reserved" as well), and kept here
for all scopes that are open: an inner one takes nothing from the peak of the outer. A program that
reads torch.cuda.max_memory_allocated() itself says track(reset_peak=False): then nothing is reset,
and "peak" is the highest since the program's own last reset.

What other libraries, CUDA's context and other processes hold is not in it. Nothing waits for the
GPU, and nothing is recorded before CUDA is in use. Everything may be called from any thread; the
allocator's figures are those of the process.
"""
from __future__ import annotations

import collections
import csv
import itertools
import os
import sys
import threading
import time
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Tuple, Union

from . import _api
from ._say import say

_native = _api._native

SAMPLES = 10_000  # kept by default: about 2 MB
SLOPE_STEPS = 8   # fewer say nothing


class Sample(NamedTuple):
    """One device at one time."""
    time_ns: int    # time.monotonic_ns()
    step: int       # since track(); the first is 1
    device: int     # torch's number
    allocated: int  # bytes
    reserved: int   # bytes
    peak: int       # bytes; of "allocated", since the sample before
    where: str      # "step", or what record() was told


class Slope(NamedTuple):
    """How "allocated" grows over steps."""
    bytes_per_step: float
    r2: float   # 1: along a line; 0: not at all, or it does not change
    steps: int  # that it was computed from


class Fragments(NamedTuple):
    """What a device's caching allocator has, and what of it is in use, now."""
    device: int        # torch's number
    reserved: int      # bytes, in `segments` that it took from the driver
    allocated: int     # bytes, in `blocks` that tensors use
    segments: int
    blocks: int
    free_blocks: int   # between and behind them
    largest_free: int  # bytes: what is larger needs a further segment
    pinned_down: int   # bytes that are free in segments in use, so that empty_cache() cannot give them back


_Read = List[Tuple[int, int, int]]  # (device, allocated, reserved) of each device in use


class _Tracker:
    """Between track() and untrack(). Whoever calls holds the lock."""

    def __init__(self, interval_steps: int, reset_peak: bool) -> None:
        self.interval, self.reset_peak, self.steps = interval_steps, reset_peak, 0
        self.numbers = itertools.count(1)
        # What is open, by number: {device: peak since it began}. 0: since the last sample.
        self.open: Dict[int, Dict[int, int]] = {0: {}}

    def read(self) -> _Read:
        """Also notes the peak so far for all that is open, and resets it."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return []
        found = []
        for device in range(cuda.device_count()):
            stats = cuda.memory_stats_as_nested_dict(device)  # all of torch's figures in one call
            allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
            if not reserved["peak"]:
                continue
            for peaks in self.open.values():
                peaks[device] = max(peaks.get(device, 0), allocated["peak"])
            if self.reset_peak:
                cuda.reset_peak_memory_stats(device)
            found.append((device, allocated["current"], reserved["current"]))
        return found


_lock = threading.Lock()
_tracker: Optional[_Tracker] = None
_samples: Deque[Sample] = collections.deque(maxlen=SAMPLES)


def _read(tracker: _Tracker) -> _Read:
    """The program goes on, and the tracking ends, when torch is not as expected."""
    global _tracker
    try:
        return tracker.read()
    except Exception as e:
        _tracker = None
        say(f"memory is not tracked any more: {e!r}")
        return []


def _put(read: _Read, peaks: Dict[int, int]) -> None:
    """The metrics of the scope that this thread is in."""
    if not read:
        return
    values = {"allocated (bytes)(pty)": 0, "reserved (bytes)(pty)": 0, "peak (bytes)(pty)": 0}
    for device, allocated, reserved in read:
        for name, value in (("allocated", allocated), ("reserved", reserved), ("peak", peaks.get(device, 0))):
            values[name + " (bytes)(pty)"] += value
            if len(read) > 1:
                values[sys.intern(f"{name} cuda:{device} (bytes)(pty)")] = value
    _api._metrics(values)


# --- what programs call -------------------------------------------------------------------------

def track(interval_steps: int = 1, *, reset_peak: bool = True, samples: int = SAMPLES) -> None:
    """Records from now on; what timeline() held is forgotten. Again: with the new options.

    interval_steps: a sample every so many steps.
    reset_peak: see above.
    samples: how many timeline() keeps; the oldest are dropped.

    May be called before torch is imported. Raises ValueError for numbers below 1.
    """
    global _tracker, _samples
    if interval_steps < 1 or samples < 1:
        raise ValueError(f"interval_steps={interval_steps}, samples={samples}: at least 1")
    with _lock:
        _tracker = _Tracker(interval_steps, reset_peak)
        _samples = collections.deque(maxlen=samples)
        _read(_tracker)
        _tracker.open[0].clear()  # what was before is none of ours


def untrack() -> None:
    """Records no more; timeline() keeps what it has. Idempotent."""
    global _tracker
    with _lock:
        _tracker = None


def record(where: str = "step") -> None:
    """Takes a sample, also as metrics of the scope that this thread is in.

    where: "step", at the end of one and inside its scope: protond.torch does that. Anything else is
        a sample of its own, which is no step.
    """
    if _tracker is None:
        return
    with _lock:
        tracker = _tracker
        if tracker is None:
            return
        if where == "step":
            tracker.steps += 1
            if tracker.steps % tracker.interval:
                return
        now = time.monotonic_ns()
        read = _read(tracker)
        peaks, tracker.open[0] = tracker.open[0], {}
        for device, allocated, reserved in read:
            _samples.append(Sample(now, tracker.steps, device, allocated, reserved, peaks[device], where))
    _put(read, peaks)


class scope(_api.scope):
    """scope(name, metrics=None): protond.scope with the memory's metrics; just that, while nothing is
    tracked.

    A context manager and a decorator; may be nested, and entered again while open.
    """

    # By thread: the tracker, the number and the depth inside of each entry, innermost last.
    _entries: Optional[Dict[int, List[Tuple[_Tracker, int, int]]]] = None

    def __enter__(self) -> "scope":
        _enter(self)
        if _tracker is not None:
            with _lock:
                self._begin()
        return self

    def _begin(self) -> None:
        if _tracker is None:
            return
        _read(_tracker)
        tracker = _tracker
        if tracker is None:  # it has just given up
            return
        number = next(tracker.numbers)
        tracker.open[number] = {}
        if self._entries is None:
            self._entries = {}
        self._entries.setdefault(threading.get_ident(), []).append((tracker, number, _native.depth()))

    def __exit__(self, *exc: Any) -> None:
        if self._entries:
            self._end()
        _exit(self, *exc)

    def _end(self) -> None:
        with _lock:
            entries = self._entries.get(threading.get_ident())
            if not entries:
                return
            tracker, number, depth = entries.pop()
            if not entries:
                del self._entries[threading.get_ident()]
            read = _read(tracker) if tracker is _tracker else []
            peaks = tracker.open.pop(number)
        _native.unwind(depth)  # what was left open inside is closed: the metrics are this scope's
        _put(read, peaks)


_enter, _exit = _api.scope.__enter__, _api.scope.__exit__


# --- what was recorded --------------------------------------------------------------------------

def timeline() -> List[Sample]:
    """The samples of record(), oldest first."""
    with _lock:
        return list(_samples)


def fragments() -> List[Fragments]:
    """Of each device with segments, from torch.cuda.memory_snapshot(): exact, as of now; needs no track().

    It takes as long as there are blocks (some ms of a large model): not for each step. [] before CUDA
    is in use. Raises what torch raises.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return []
    found: Dict[int, List[int]] = {}
    for segment in cuda.memory_snapshot():
        f = found.setdefault(segment["device"], [0] * 7)
        free = [b["size"] for b in segment["blocks"] if b["state"] == "inactive"]
        used = [b["size"] for b in segment["blocks"] if b["state"] != "inactive"]
        f[0] += segment["total_size"]
        f[1] += sum(used)
        f[2] += 1
        f[3] += len(used)
        f[4] += len(free)
        f[5] = max([f[5]] + free)
        f[6] += sum(free) if used else 0
    return [Fragments(device, *f) for device, f in sorted(found.items())]


def _csv_text(text: str) -> str:
    """For a terminal and for spreadsheets, which compute a cell that begins like a formula."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text


def to_csv(path: Union[str, "os.PathLike[str]"]) -> None:
    """Writes timeline() as CSV with a head; the columns are those of Sample. Raises OSError.

    In `where`, what cannot be printed is an escape (\\n), and an apostrophe stands before "=", "+", "-" and "@".
    """
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Sample._fields)
        writer.writerows(s._replace(where=_csv_text(s.where)) for s in timeline())


def slope(device: Optional[int] = None) -> Optional[Slope]:
    """The straight line through "allocated" over steps, by least squares; None below 8 steps.

    device: None is the one of the oldest sample. Memory that a program fills up in its first steps
    (the optimizer's state, say) looks like growth until it is in the past: track() again forgets it.
    """
    steps = [s for s in timeline() if s.where == "step"]
    if device is None and steps:
        device = steps[0].device
    points = [(s.step, s.allocated) for s in steps if s.device == device]
    n = len(points)
    if n < SLOPE_STEPS:
        return None
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    xx = sum((x - mean_x) ** 2 for x, _ in points)
    yy = sum((y - mean_y) ** 2 for _, y in points)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return Slope(xy / xx, xy * xy / (xx * yy) if yy else 0.0, n)
