# SPDX-License-Identifier: MIT
"""PyTorch's caching allocator, block by block: builds what it tells (blocks.cpp), and loads it.

Only a torch with CUDA has that allocator, and only one of 2.1 or later tells. It is told to once CUDA is in use,
for before that there is none. Where it cannot be built, _snapshots.py reads what torch says of it.
"""
import ctypes

from . import _api, _snapshots
from ._built import Lacking, Part, Wanted, built
from ._say import say

_native = _api._native
_PART = Part("blocks", "blocks.cpp", ("blocks_calls.h",), ("-lc10", "-lc10_cuda"), True, "what sees torch's allocations")


def _version(torch):
    found = []
    for one in str(torch.__version__).split("+")[0].split(".")[:2]:
        found.append(int("".join(c for c in one if c.isdigit()) or 0))
    return tuple(found)


def _attach(torch):
    lib = ctypes.CDLL(built(torch, _PART))
    lib.protond_blocks_open.restype = ctypes.c_char_p
    calls = _native.blocks_calls()
    why = lib.protond_blocks_open(calls, ctypes.c_uint64(len(calls)))
    if why is not None:
        raise Lacking(why.decode(errors="replace"))
    _native.blocks_loaded(*(ctypes.cast(one, ctypes.c_void_p).value for one in (lib.protond_blocks_turn, lib.protond_blocks_tell)))


def _load(torch):
    if not getattr(torch.version, "cuda", None):
        return  # it has no such allocator
    if _version(torch) < (2, 1):
        raise Lacking(f"torch {torch.__version__} does not tell them, 2.1 is the first that does; protond.memory has its figures by step")
    try:
        built(torch, _PART)  # now, for nobody waits for it later
    except Lacking as e:
        say(f"torch's allocations are not seen one by one: {e}; they are read from its snapshots, at steps and "
            "at the end")
        torch.cuda._lazy_call(lambda: _snapshots.begin(torch))
        return
    torch.cuda._lazy_call(lambda: BLOCKS.attempt(_attach, torch))  # an exception there would be the program's


BLOCKS = Wanted("torch's allocations are not recorded one by one", _load)
