# SPDX-License-Identifier: MIT
"""Operators of PyTorch: builds what sees them (ops.cpp), once for each torch, and loads it.

torch's RecordFunction is C++, so what listens to it must be built for the torch at hand. It is built
here, with the user's compiler, into the user's cache; a lock keeps all ranks of a machine but one from
building too. Why there are no operators is said once, in a line, and the program goes on.
"""
import ctypes
import os

from . import _api, _options
from ._built import Lacking, Part, Wanted, built

_native = _api._native
_HERE = os.path.dirname(os.path.abspath(__file__))
_PART = Part("ops", "ops.cpp", ("ops_calls.h", "ops_flops.h", "ops_words.h", "op_terms.h"), ("-ltorch_cpu", "-lc10"), False, "what sees operators")
# The bits of enum ops_detail.
_DETAILS = {"torch_shapes": 1, "torch_dtypes": 2, "torch_strides": 4, "torch_scalars": 8, "torch_kwargs": 16,
            "torch_stack": 32, "torch_sequence": 64, "torch_flops": 128}

# --- loading ------------------------------------------------------------------------------------

_lib, _details = None, 0  # once it is loaded; what is recorded


def _load(torch):
    global _lib
    lib = ctypes.CDLL(built(torch, _PART))
    lib.protond_ops_open.restype = ctypes.c_char_p
    always = _options.current()["torch_ops"]
    calls = _native.ops_calls(always)
    why = lib.protond_ops_open(calls, ctypes.c_uint64(len(calls)),
                               os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "").encode(errors="surrogateescape"),
                               os.path.join(_HERE, "").encode(errors="surrogateescape"))
    if why is not None:
        raise Lacking(why.decode())
    _lib = lib
    read_options()
    _native.ops_loaded(ctypes.cast(lib.protond_ops_turn, ctypes.c_void_p).value, always)


def read_options(more=False):
    """A session that wants operators begins: what is recorded of them is what the options say now; more: another one that
    wants them goes on, and keeps its own."""
    global _details
    if _lib is None:
        return
    options = _options.current()
    _details = sum(bit for name, bit in _DETAILS.items() if options[name]) | (_details if more else 0)
    _lib.protond_ops_details(ctypes.c_uint32(_details))


OPERATORS = Wanted("operators are not recorded", _load)
