# SPDX-License-Identifier: MIT
"""A line on standard error from inside of the program, which goes on whatever becomes of it."""
import os
import sys


def say(text):
    line = f"protond: {text}\n"
    try:
        if sys.stderr is sys.__stderr__:  # what a full disk does not take must not wait in its buffer: Python would end with 120
            os.write(sys.stderr.fileno(), line.encode(errors="backslashreplace"))
        else:
            sys.stderr.write(line)
    except (AttributeError, OSError, ValueError):  # there is none, or it is closed, full, or a pipe that nobody reads
        pass
