# SPDX-License-Identifier: MIT
"""Numbers on the GPU that a program gives while it captures a CUDA graph.

Nothing can be read then: they have no value yet, and another one each time the graph runs. So a kernel of ours goes into
the graph. At each run it writes the numbers into memory that the GPU and the recorder share; there each finds the launch
that it belongs to. The kernel is PTX, which the driver compiles, and it is launched by the driver's own calls: neither
Triton nor a compiler is needed. It stands as "<metric>" below "__proton_launch_metadata", which viewers leave out; for a launch's metadata that has
the launch's name below it.
"""
import contextlib
import ctypes
import sys
import threading

from . import _api
from .state import metadata_state

_native = _api._native
_OP = _native.name("<metric>")

# Each thread writes one number: the entry's place is counted up in the ring's first word, the entry is made empty, then
# its value is written, and then its tag, which is the number's own on top of the place. See struct protond_engine.
_PTX = b"""
.version 6.4
.target sm_70
.address_size 64
.visible .entry protond_captured(.param .u64 numbers, .param .u64 ring, .param .u64 mask, .param .u32 first, .param .u32 n)
{
        .reg .pred %done;
        .reg .b32 %r<5>;
        .reg .b64 %rd<12>;
        mov.u32 %r1, %tid.x;
        ld.param.u32 %r2, [n];
        setp.ge.u32 %done, %r1, %r2;
        @%done bra END;
        ld.param.u64 %rd1, [numbers];
        ld.param.u64 %rd2, [ring];
        ld.param.u64 %rd3, [mask];
        ld.param.u32 %r3, [first];
        mul.wide.u32 %rd4, %r1, 8;
        add.u64 %rd1, %rd1, %rd4;
        ld.u64 %rd5, [%rd1];
        atom.add.u64 %rd6, [%rd2], 1;
        and.b64 %rd7, %rd6, %rd3;
        shl.b64 %rd7, %rd7, 4;
        add.u64 %rd7, %rd7, %rd2;
        mov.u64 %rd8, 0;
        st.volatile.u64 [%rd7+64], %rd8;
        membar.sys;
        st.volatile.u64 [%rd7+72], %rd5;
        membar.sys;
        add.u32 %r4, %r3, %r1;
        cvt.u64.u32 %rd9, %r4;
        shl.b64 %rd9, %rd9, 32;
        and.b64 %rd10, %rd6, 4294967295;
        or.b64 %rd11, %rd9, %rd10;
        st.volatile.u64 [%rd7+64], %rd11;
END:
        ret;
}
\0"""
_THREADS = 64  # of a launch, as many as a vector may have numbers
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_PORTABLE_MAPPED = 3  # of CU_MEMHOSTREGISTER

_lock = threading.Lock()
_devices = {}  # its number: (function, address of the ring there, places - 1)
_next = 1  # the number of the next number; the tag 0 is no number's
_NUMBERS = 1 << 32


class _Here(threading.local):
    kernel = None


_here = _Here()


@contextlib.contextmanager
def metadata_of(kernel):
    """The numbers that this thread gives inside are metadata of a launch of this kernel."""
    _here.kernel = kernel
    try:
        yield
    finally:
        _here.kernel = None


class _Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")

    def __call__(self, name, *args):
        code = getattr(self.cuda, name)(*args)
        if code != 0:
            raise OSError(f"{name} gave {code}")


class _relaxed:
    """What is not allowed to a thread that captures, loading a kernel above all, is allowed here."""

    def __init__(self, driver):
        self.driver, self.mode = driver, ctypes.c_int(_RELAXED)

    def __enter__(self):
        self.driver("cuThreadExchangeStreamCaptureMode", ctypes.byref(self.mode))

    def __exit__(self, *exc):
        self.driver("cuThreadExchangeStreamCaptureMode", ctypes.byref(self.mode))


_driver = None


def _device(number):
    if number in _devices:
        return _devices[number]
    ring = _native.captured_ring(number)
    if ring is None:
        raise OSError("there is no memory for what its kernels write")
    address, size = ring
    module, function, there = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    _driver("cuModuleLoadData", ctypes.byref(module), _PTX)
    _driver("cuModuleGetFunction", ctypes.byref(function), module, b"protond_captured")
    _driver("cuMemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_uint(_PORTABLE_MAPPED))
    _driver("cuMemHostGetDevicePointer_v2", ctypes.byref(there), ctypes.c_void_p(address), ctypes.c_uint(0))
    _devices[number] = function, there.value, (size - 64) // 16 - 1
    return _devices[number]


def _launch(device, stream, words, first, n):
    function, ring, mask = device
    given = (ctypes.c_uint64(words), ctypes.c_uint64(ring), ctypes.c_uint64(mask), ctypes.c_uint32(first), ctypes.c_uint32(n))
    pointers = (ctypes.c_void_p * len(given))(*(ctypes.addressof(one) for one in given))
    _driver("cuLaunchKernel", function, 1, 1, 1, _THREADS, 1, 1, 0, ctypes.c_void_p(stream), pointers, None)


class _aside:
    """What is launched here is no work of the program's. `operation`: the one that is open, or 0."""

    def __init__(self, operation):
        self.operation, self.state = operation, metadata_state(_here.kernel)

    def __enter__(self):
        _native.op_exit()
        self.state.__enter__()

    def __exit__(self, *exc):
        _native.op_exit()
        self.state.__exit__()
        if self.operation:
            _native.op_enter(self.operation)


def _put(names, tensor, torch):
    """Raises OSError, or TypeError for what is no number."""
    global _driver, _next
    whole, operation = not tensor.is_floating_point(), _native.op()
    if tensor.is_complex():
        raise TypeError("it is complex")
    if tensor.device.index != torch.cuda.current_device():
        raise OSError("it is on another GPU than the current one")
    with _lock:
        _driver = _driver or _Driver()
        with _relaxed(_driver):
            device = _device(tensor.device.index)
            first, _next = _next, _next + len(names)
            if _next > _NUMBERS:
                raise OSError("too many were given already")
            with _aside(operation):
                words = tensor.detach().reshape(-1).to(torch.int64 if whole else torch.float64).contiguous()
            for i, name in enumerate(names):
                if not _native.captured(name, whole, tensor.device.index << 32 | (first + i)):
                    raise OSError("its begin was not seen: start the session before it")
            with _aside(operation):
                _native.op_enter(_OP)
                _launch(device, torch.cuda.current_stream().cuda_stream, words.data_ptr(), first, len(names))


def put(name, names, tensor):
    """The numbers of a tensor, as these metrics of where this thread stands, at each run of the graph that it captures.
    TypeError where that cannot be."""
    try:
        _put(names, tensor, sys.modules["torch"])
    except (OSError, TypeError) as e:
        raise TypeError(f"metric {name!r}: a tensor on the GPU cannot be read while a CUDA graph is captured: {e}") from e
