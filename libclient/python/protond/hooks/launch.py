# SPDX-License-Identifier: MIT
"""LaunchHook: Triton's kernels under the names and with the metrics that their launch_metadata functions give."""
from __future__ import annotations

import contextvars
import numbers
import re
import threading
import weakref
from typing import Any, Dict, Optional

from .. import _api
from ..metric import FLOPS_WIDTHS, transform_tensor_metrics
from ..state import metadata_state
from .hook import Hook

# Of this thread's last launch that was named; they stay set after it, and no two launches have the same id.
op_name: "contextvars.ContextVar[Optional[str]]" = contextvars.ContextVar("op_name", default=None)
id: "contextvars.ContextVar[Optional[int]]" = contextvars.ContextVar("id", default=None)
# Whether this thread is between enter() and exit(), and whether it is inside enter().
enabled: "contextvars.ContextVar[bool]" = contextvars.ContextVar("enabled", default=False)
in_hook: "contextvars.ContextVar[bool]" = contextvars.ContextVar("in_hook", default=False)

_native = _api._native
_STATE = metadata_state()
_OWN_KEYS = ("name", "function", "stream")  # of every launch, put there by Triton
_NUMBERS = (int, float, numbers.Real)  # the usual ones first: numbers.Real is slow to ask


class _Here(threading.local):
    launch: Any = None  # a weak reference to the metadata of the launch whose operation is open on this thread


_here = _Here()


def _close() -> None:
    _here.launch = None
    enabled.set(False)
    _native.op_exit()


def _lost(launch: Any) -> None:
    """A launch that failed, or whose hook was taken away meanwhile, has no exit: it ends with its metadata."""
    if _here.launch is launch:
        _close()


def _metrics(metadata: Dict[str, Any]) -> Dict[str, Any]:
    given = {}
    for name, value in metadata.items():
        if name not in _OWN_KEYS and (isinstance(value, _NUMBERS) or hasattr(value, "data_ptr")):
            given[name] = value
    if not given:
        return given
    scalars, tensors = transform_tensor_metrics(given)
    return {**scalars, **tensors}


def _capture(kernel: Optional[str], tensors: Dict[str, Any]) -> None:
    """Of a launch into a CUDA graph's capture. What cannot be recorded does not keep it from being launched."""
    if not tensors:
        return
    from .. import _captured
    with _captured.metadata_of(kernel):
        for name, tensor in tensors.items():
            try:
                _native.metrics({name: tensor})
            except TypeError as e:
                _api.logger.warning("%s: left out", e)


class LaunchHook(Hook):
    """Names each launch, on the thread that makes it, and records its metrics there. There is one per process.

    The kernel's launch_metadata function runs in the state "__proton_launch_metadata", with whatever
    it launches; into a CUDA graph, below the kernel's name there (Proton 3.6 has none of graphs, later versions so). Its "name" stands for the kernel's own; each number that it gives is a metric, also
    a tensor, which is waited for, or read by the CUDA graph that is captured. A launch that another callback makes between enter()
    and exit() is named too; the outer launch keeps its metrics, but its kernel then has its own name.
    Does nothing while nothing is recorded.
    """

    priority = 100
    flops_width = FLOPS_WIDTHS
    metrics = [*(f"flops{width}" for width in FLOPS_WIDTHS), "bytes", "flops"]  # what 3.6 takes of launch_metadata
    _one: Optional["LaunchHook"] = None
    _include: Optional["re.Pattern[str]"] = None
    _exclude: Optional["re.Pattern[str]"] = None

    def __new__(cls) -> "LaunchHook":
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    def configure(self, *, include: Optional[str] = None, exclude: Optional[str] = None) -> None:
        """Leaves out kernels that do not match `include`, then those that match `exclude`; None: no such rule.

        Regular expressions, matched from the beginning of the kernel's name and, where its
        launch_metadata function gives another name, of that name too. launch_metadata is not called
        for a kernel that its own name leaves out. re.error for a wrong expression.
        """
        self._include, self._exclude = (re.compile(rule) if rule else None for rule in (include, exclude))

    def _wanted(self, name: Optional[str]) -> bool:
        if name is None:
            return True
        if self._include is not None and self._include.match(name) is None:
            return False
        return self._exclude is None or self._exclude.match(name) is None

    def init_handle(self, module: Any, function: Any, name: str, metadata_group: Dict[str, str], hash: str) -> None:
        pass

    def activate(self) -> None:
        pass

    def deactivate(self) -> None:
        pass

    def enter(self, metadata: Any) -> None:
        if metadata is None or in_hook.get() or not _native.recording():
            return
        kernel = metadata.data.get("name")
        if not self._wanted(kernel):
            return
        token = in_hook.set(True)
        try:
            with metadata_state(kernel) if _native.capturing() else _STATE:
                found = metadata.get()
                metrics = _metrics(found)
        finally:
            in_hook.reset(token)
        name = found["name"]
        if not self._wanted(name):
            return
        _native.op_enter(name)
        _here.launch = weakref.ref(metadata, _lost)
        op_name.set(name)
        id.set(_native.number())
        enabled.set(True)
        try:
            _native.metrics({k: v for k, v in metrics.items() if not hasattr(v, "data_ptr")})
            _capture(kernel, {k: v for k, v in metrics.items() if hasattr(v, "data_ptr")})
        except BaseException:
            _close()
            raise

    def exit(self, metadata: Any) -> None:
        launch = _here.launch
        if launch is not None and launch() is metadata:
            _close()
