# SPDX-License-Identifier: MIT
"""The name under which Proton's hook for intra-kernel instrumentation is known."""
from __future__ import annotations

from typing import Any

from .hook import Hook


class InstrumentationHook(Hook):
    """Cannot be made: NotImplementedError."""

    def __init__(self, mode_obj: Any = None) -> None:
        raise NotImplementedError("protond does not record inside kernels yet: use Triton's own Proton for that, "
                                  "with backend='instrumentation'")
