# SPDX-License-Identifier: MIT
"""PyTorch's caching allocator, block by block: builds what it tells (blocks.cpp), and loads it.

Only a torch with CUDA has that allocator, and only one of 2.1 or later tells. It is told to once CUDA is in use,
for before that there is none.
"""
import ctypes
import sys
import threading

from . import _api, _watch
from ._built import Lacking, Part, built

_native = _api._native
_PART = Part("blocks", "blocks.cpp", ("blocks_calls.h",), ("-lc10", "-lc10_cuda"), True, "what sees torch's allocations")
_lock = threading.Lock()
_tried = False


def _version(torch):
    found = []
    for one in str(torch.__version__).split("+")[0].split(".")[:2]:
        found.append(int("".join(c for c in one if c.isdigit()) or 0))
    return tuple(found)


def _say(why):
    sys.stderr.write(f"protond: torch's allocations are not recorded one by one: {why}\n")


def _attach(torch):
    """CUDA is in use; an exception here would be the program's."""
    try:
        lib = ctypes.CDLL(built(torch, _PART))
        lib.protond_blocks_open.restype = ctypes.c_char_p
        calls = _native.blocks_calls()
        why = lib.protond_blocks_open(calls, ctypes.c_uint64(len(calls)))
        if why is not None:
            raise Lacking(why.decode(errors="replace"))
        _native.blocks_loaded(*(ctypes.cast(one, ctypes.c_void_p).value for one in (lib.protond_blocks_turn, lib.protond_blocks_tell)))
    except Lacking as e:
        _say(e)
    except (OSError, AttributeError, ValueError) as e:
        _say(f"what was built for torch {torch.__version__} cannot be loaded: {e}")


def _load(torch):
    if not getattr(torch.version, "cuda", None):
        return  # it has no such allocator
    if _version(torch) < (2, 1):
        raise Lacking(f"torch {torch.__version__} does not tell them, 2.1 is the first that does; protond.memory has its figures by step")
    built(torch, _PART)  # now, for nobody waits for it later
    torch.cuda._lazy_call(lambda: _attach(torch))


def load(torch):
    """Allocations are recorded from now on, while a session wants them, or from when CUDA is in use."""
    global _tried
    with _lock:
        if _tried:
            return
        _tried = True
        try:
            _load(torch)
        except Lacking as e:
            _say(e)
        except AttributeError as e:
            _say(f"torch {torch.__version__} is not as expected: {e}")


def wanted():
    """A session of this process wants them, and waits: they are there when this returns, if torch is."""
    _watch.when_imported("torch", load)


def wanted_meanwhile():
    """Somebody switched them on. The program goes on while it is built."""
    if "torch" in sys.modules:
        threading.Thread(target=wanted, name="protond allocations", daemon=True).start()
    else:
        wanted()
