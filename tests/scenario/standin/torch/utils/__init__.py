# SPDX-License-Identifier: MIT. Stand-in.
from . import data
