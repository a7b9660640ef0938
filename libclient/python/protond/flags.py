# SPDX-License-Identifier: MIT
"""What this process is doing: as triton.profiler.flags. To be read: protond sets them."""
import dataclasses


@dataclasses.dataclass
class ProfilerFlags:
    profiling_on: bool = False  # a session was started here, and not all were finalized
    instrumentation_on: bool = False  # kernels are instrumented
    command_line: bool = False  # the program was started by `python -m protond`


flags = ProfilerFlags()
