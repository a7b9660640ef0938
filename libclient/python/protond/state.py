# SPDX-License-Identifier: MIT
"""States: what stands last in the path, below all scopes, whatever is entered inside."""
from . import _api
from ._api import _native
from .metric import COMPUTE_METADATA_SCOPE_NAME


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
        return _api._decorate(self, func)


def enter_state(name):
    """Enters a state: see `state`."""
    _native.state_enter(name)


def exit_state():
    """Leaves the innermost state."""
    _native.state_exit()


class metadata_state(state):
    """What computes a launch's metadata: its own launches stand below "__proton_launch_metadata",
    which viewers leave out; kernel_name, the launch that it is for, stands between."""
    __slots__ = ("_kernel",)

    def __init__(self, kernel_name=None):
        super().__init__(COMPUTE_METADATA_SCOPE_NAME)
        self._kernel = _native.name(kernel_name) if kernel_name else None

    def __enter__(self):
        super().__enter__()
        if self._kernel is not None:
            _native.state_enter_below(self._kernel)
        return self

    def __exit__(self, *exc):
        if self._kernel is not None:
            _native.state_exit()
        super().__exit__(*exc)
