# SPDX-License-Identifier: MIT
"""Stands in for a torch with CUDA: its caching allocator (allocator.cpp), and CUDA that is in use when init() says so."""
import ctypes
import os
import types

__version__ = "2.11.0+standin"
version = types.SimpleNamespace(cuda="12.8", git_version="")
_C = types.SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=1)
_waiting, _in_use = [], []
cuda = types.SimpleNamespace(_lazy_call=lambda f: f() if _in_use else _waiting.append(f), is_initialized=lambda: bool(_in_use),
                             is_available=lambda: True)
for name in ("libc10.so", "libc10_cuda.so"):
    lib = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib", name), ctypes.RTLD_GLOBAL)
lib.standin_alloc.argtypes, lib.standin_alloc.restype = [ctypes.c_int64], ctypes.c_uint64
lib.standin_free.argtypes, lib.standin_free.restype = [ctypes.c_uint64], None


def init():
    _in_use.append(1)
    for f in _waiting:
        f()


def stats():
    to = (ctypes.c_int64 * 13)()
    lib.standin_stats(to)
    return list(to)
