# SPDX-License-Identifier: MIT
from .jit import JITFunction  # noqa: F401
