# SPDX-License-Identifier: MIT
"""Hook, what a session may have run around each Triton launch, and HookManager, which calls them."""
from __future__ import annotations

import collections
import contextlib
import importlib
import threading
from typing import Any, Dict, List, Optional, Tuple

from .. import _api


class Hook:
    """What to do when Triton loads, launches and unloads kernels, while a session that has it is active.

    All of it is called by the thread that launches, so also by several at once. What it raises ends
    the launch and reaches the program. `metadata` is Triton's LazyDict: metadata.data has "name",
    "function" and "stream", metadata.get() also what the kernel's launch_metadata function says. It
    is None where a launcher was made by a torch that saw no hook at that time.
    """

    priority: int = 0  # higher ones enter first and exit last
    needs_triton: bool = True  # False: may be registered where there is no Triton; only activated there

    def init_handle(self, module: Any, function: Any, name: str, metadata_group: Dict[str, str], hash: str) -> None:
        """A kernel was loaded. function: the driver's handle; metadata_group: {file name: path} of its parts."""
        raise NotImplementedError

    def destroy_handle(self, module: Any, function: Any, name: str, metadata_group: Dict[str, str],
                       hash: str) -> None:
        """A kernel was unloaded; Triton says so from 3.8 on. Nothing, if not overridden."""

    def enter(self, metadata: Any) -> None:
        """Before the launch."""
        raise NotImplementedError

    def exit(self, metadata: Any) -> None:
        """After the launch, with the object that enter() got; not called for a launch that failed."""
        raise NotImplementedError

    def activate(self) -> None:
        """The first active session has this hook now."""
        raise NotImplementedError

    def deactivate(self) -> None:
        """No active session has this hook any more."""
        raise NotImplementedError


def _runtime() -> Any:
    """triton.knobs.runtime, looked up at each call for a test may replace it. protond.Error without one."""
    try:
        runtime = importlib.import_module("triton.knobs").runtime
    except ImportError as e:
        raise _api.Error(f"a hook on Triton's launches needs Triton 3.5 or later in this Python: {e}") from e
    if not hasattr(getattr(runtime, "launch_enter_hook", None), "add"):
        raise _api.Error("a hook on Triton's launches needs Triton 3.5 or later: this one has room for one hook only")
    return runtime


class HookManager:
    """Which hooks each session has, and the one place from which Triton calls them.

    It is on Triton's chains only while some hook is active; other callbacks on them stay where they
    are. Changes may be made by any thread; a launch that is under way meanwhile sees the hooks from
    before or after.
    """

    active_hooks: List[Hook] = []  # by priority, the highest first; a new list at each change
    session_hooks: Dict[int, Dict[Hook, bool]] = collections.defaultdict(dict)  # session: {hook: active?}

    _lock = threading.RLock()
    _chained: List[Tuple[Any, Any]] = []  # (chain, callback) that were added

    # --- sessions ---------------------------------------------------------------------------------

    @staticmethod
    def check(hook: Hook) -> None:
        """protond.Error where the hook needs a Triton that is not there."""
        if getattr(hook, "needs_triton", True):
            _runtime()

    @classmethod
    def register(cls, hook: Hook, session: int) -> None:
        """Gives a session a hook, active. protond.Error as check()."""
        with cls._lock:
            cls.check(hook)
            cls._start(hook)
            cls.session_hooks[session][hook] = True

    @classmethod
    def unregister(cls, session: Optional[int] = None) -> None:
        """Takes all hooks from a session, or from all (None). An unknown session is ignored."""
        with cls._lock:
            if session is None:
                cls.session_hooks.clear()
            else:
                cls.session_hooks.pop(session, None)
            cls._stop_unused()

    @classmethod
    def activate(cls, session: Optional[int] = None) -> None:
        """Lets the hooks of a session, or of all (None), be called again. Idempotent."""
        with cls._lock:
            for hooks in cls._of(session):
                for hook in hooks:
                    cls._start(hook)
                    hooks[hook] = True

    @classmethod
    def deactivate(cls, session: Optional[int] = None) -> None:
        """Ends the calls of hooks that no other active session has. None: all sessions. Idempotent."""
        with cls._lock:
            for hooks in cls._of(session):
                hooks.update(dict.fromkeys(hooks, False))
            cls._stop_unused()

    @classmethod
    def _of(cls, session: Optional[int]) -> List[Dict[Hook, bool]]:
        if session is None:
            return list(cls.session_hooks.values())
        return [cls.session_hooks[session]] if session in cls.session_hooks else []

    @classmethod
    def _start(cls, hook: Hook) -> None:
        if hook not in cls.active_hooks:
            hook.activate()
            cls._set([*cls.active_hooks, hook])

    @classmethod
    def _stop_unused(cls) -> None:
        used = [hook for hooks in cls.session_hooks.values() for hook, active in hooks.items() if active]
        unused = [hook for hook in cls.active_hooks if hook not in used]
        cls._set([hook for hook in cls.active_hooks if hook in used])
        failed = None
        for hook in unused:
            try:
                hook.deactivate()
            except BaseException as e:
                failed = e if failed is None else failed
        if failed is not None:
            raise failed

    @classmethod
    def _set(cls, hooks: List[Hook]) -> None:
        cls.active_hooks = sorted(hooks, key=lambda hook: hook.priority, reverse=True)
        if hooks:
            cls._add_to_chains()
            return
        while cls._chained:
            chain, callback = cls._chained.pop()
            chain.remove(callback)

    @classmethod
    def _add_to_chains(cls) -> None:
        try:
            runtime = _runtime()
        except _api.Error:  # none of the hooks needs it: register() has looked
            return
        for knob, callback in (("kernel_load_end_hook", cls.init_handle), ("kernel_unload_hook", cls.destroy_handle),
                               ("launch_enter_hook", cls.enter), ("launch_exit_hook", cls.exit)):
            chain = getattr(runtime, knob, None)
            if chain is None:
                continue
            chain.add(callback)  # nothing, when it is there
            if (chain, callback) not in cls._chained:
                cls._chained.append((chain, callback))

    # --- what Triton calls ------------------------------------------------------------------------

    @classmethod
    def init_handle(cls, *args: Any, **kwargs: Any) -> None:
        for hook in cls.active_hooks:
            hook.init_handle(*args, **kwargs)

    @classmethod
    def destroy_handle(cls, *args: Any, **kwargs: Any) -> None:
        for hook in cls.active_hooks:
            hook.destroy_handle(*args, **kwargs)

    @classmethod
    def enter(cls, metadata: Any) -> None:
        hooks, entered = cls.active_hooks, 0
        try:
            for hook in hooks:
                hook.enter(metadata)
                entered += 1
        except BaseException:  # Triton does not launch then, and calls no exit
            with contextlib.suppress(Exception):
                _exit(hooks[:entered], metadata)
            raise

    @classmethod
    def exit(cls, metadata: Any) -> None:
        _exit(cls.active_hooks, metadata)


def _exit(hooks: List[Hook], metadata: Any) -> None:
    """All of them, also after one that raised; then raises what the first one did."""
    failed = None
    for hook in reversed(hooks):
        try:
            hook.exit(metadata)
        except BaseException as e:
            failed = e if failed is None else failed
    if failed is not None:
        raise failed
