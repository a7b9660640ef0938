# SPDX-License-Identifier: MIT. Stand-in.
compiling = False  # a test sets it: Dynamo traces


def is_compiling():
    return compiling
