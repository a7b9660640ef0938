# SPDX-License-Identifier: MIT
"""Operator detail: a scope for each ATen operator, with what it was called with, on every thread.

A TorchDispatchMode sees each operator below autograd with its arguments, in the backward's threads
too, and needs no link with libtorch. The price is the mode's own: some microseconds an operator.
docs/python.md has what the other ways cost (TorchFunctionMode, emit_nvtx, sys.setprofile) and why
this one was taken. Keys are those of Kineto's traces; a tree keeps the last value of each.
"""
import sys
import threading

from . import _api

_native = _api._native
_push, _pop, _metrics = _native.push, _native.pop, _native.metrics

# Kineto's names of types.
_TYPES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "int8": "signed char", "uint8": "unsigned char", "int16": "short int", "int32": "int",
    "int64": "long int", "bool": "bool", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>", "float8_e4m3fn": "c10::Float8_e4m3fn", "float8_e5m2": "c10::Float8_e5m2",
}
_NAMES_MAX = 65536
_TEXT_MAX = 1024
_STACK_MAX = 64


def _name(func):
    """aten.mm.default -> aten::mm"""
    packet = str(getattr(func, "overloadpacket", func))
    return packet.replace(".", "::", 1)


def _is_tensors(value, tensor):
    return isinstance(value, (tuple, list)) and len(value) > 0 and isinstance(value[0], tensor)


def _dims(value, tensor):
    if isinstance(value, tensor):
        return list(value.shape)
    if _is_tensors(value, tensor):
        return [list(v.shape) for v in value if isinstance(v, tensor)]
    return []


def _strides(value, tensor):
    if isinstance(value, tensor):
        return list(value.stride())
    if _is_tensors(value, tensor):
        return [list(v.stride()) for v in value if isinstance(v, tensor)]
    return []


def _type(value, tensor):
    if isinstance(value, tensor):
        dtype = str(value.dtype).rpartition(".")[2]
        return _TYPES.get(dtype, dtype)
    if _is_tensors(value, tensor):
        return "TensorList"
    if isinstance(value, (tuple, list)):
        return "ScalarList"
    return "" if value is None else "Scalar"


def _concrete(value, tensor):
    return "" if isinstance(value, tensor) or _is_tensors(value, tensor) else str(value)


def _stack():
    """FILE:LINE@FUNCTION, outermost first, without torch's frames and ours."""
    frame, lines = sys._getframe(2), []
    while frame is not None and len(lines) < _STACK_MAX:
        code = frame.f_code
        if not frame.f_globals.get("__name__", "").startswith(("torch", "protond")):
            lines.append(f"{code.co_filename}:{frame.f_lineno}@{code.co_name}")
        frame = frame.f_back
    return ";".join(reversed(lines))


# --- work of an operator ------------------------------------------------------------------------

def _matmul(shapes):
    """2 x rows x inner x columns, over the batch."""
    a, b = shapes[-2], shapes[-1]
    batch = a[0] if len(a) == 3 else 1
    return 2 * batch * a[-2] * a[-1] * b[-1]


_OLD_FLOPS = {"aten::mm": _matmul, "aten::addmm": _matmul, "aten::bmm": _matmul, "aten::baddbmm": _matmul}


def _registry():
    """torch's own formulas by operator (2.1 and later), else none."""
    try:
        from torch.utils.flop_counter import flop_registry
    except ImportError:
        return {}
    return flop_registry


class _Work:
    """flops{8,16,32,64} and bytes of the operators that torch's flop counter counts."""

    def __init__(self, torch):
        self.tensor = torch.Tensor
        self.registry = _registry()

    def of(self, func, name, args, kwargs, out):
        formula = self.registry.get(getattr(func, "overloadpacket", None))
        if formula is not None:
            flops = formula(*args, **kwargs, out_val=out)
        elif not self.registry and name in _OLD_FLOPS:
            flops = _OLD_FLOPS[name]([a.shape for a in args if isinstance(a, self.tensor)])
        else:
            return None
        tensors = [a for a in args if isinstance(a, self.tensor)]
        outs = [o for o in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(o, self.tensor)]
        width = 8 * tensors[0].element_size() if tensors else 32
        return {f"flops{width}": flops,
                "bytes": sum(t.numel() * t.element_size() for t in tensors + outs)}


# --- the mode -----------------------------------------------------------------------------------

def _make_mode(torch, options):
    from torch.utils._python_dispatch import TorchDispatchMode
    tensor = torch.Tensor
    shapes, types, strides = options["shapes"], options["dtypes"], options["strides"]
    scalars, keywords, stack, sequence = (options["scalars"], options["kwargs"], options["stack"],
                                          options["sequence"])
    work = _Work(torch) if options["flops"] else None
    detail = types or strides or scalars or keywords or stack or sequence
    names, ids = {}, {}

    def describe(args, kwargs):
        found = {}
        if types:
            found["Input type (pty)"] = str([_type(a, tensor) for a in args])[:_TEXT_MAX]
        if strides:
            found["Input Strides (pty)"] = str([_strides(a, tensor) for a in args])[:_TEXT_MAX]
        if scalars:
            found["Concrete Inputs (pty)"] = str([_concrete(a, tensor) for a in args])[:_TEXT_MAX]
        if keywords and kwargs:
            found["kwinputs (pty)"] = str({k: _concrete(v, tensor) or _type(v, tensor)
                                           for k, v in kwargs.items()})[:_TEXT_MAX]
        if stack:
            found["Call stack (pty)"] = _stack()[:_TEXT_MAX]
        if sequence:
            number = _sequence(torch)
            if number is not None:
                found["Sequence number (pty)"] = number
        return found

    def scope_of(func, args):
        name = names.get(func)
        if name is None:
            name = names[func] = _name(func)
        if not shapes:
            return name, name
        dims = str([_dims(a, tensor) for a in args])
        key = (name, dims)
        found = ids.get(key)
        if found is None:
            if len(ids) >= _NAMES_MAX:
                ids.clear()
            found = ids[key] = f"{name} {dims}"
        return name, found

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, func, types_, args=(), kwargs=None):
            kwargs = kwargs or {}
            name, scope = scope_of(func, args)
            _push(scope)
            try:
                if detail:
                    _metrics(describe(args, kwargs))
                out = func(*args, **kwargs)
                if work is not None:
                    found = work.of(func, name, args, kwargs, out)
                    if found is not None:
                        _metrics(found)
                return out
            finally:
                _pop(scope)

    return Operators()


def _sequence(torch):
    """The number that ties a forward operator to the backward node that differentiates it."""
    node = getattr(torch._C, "_current_autograd_node", None)
    node = node() if node is not None else None
    if node is not None:
        return node._sequence_nr()
    number = getattr(torch.autograd, "_get_sequence_nr", None)
    return number() - 1 if number is not None else None


class _Threads(threading.local):
    mode = None


_threads = _Threads()
_options = None
_torch = None


def enable(torch, options):
    """Operators have scopes from now on, on this thread and on each that runs a module."""
    global _options, _torch
    _torch, _options = torch, dict(options)
    here()


def here():
    """On the calling thread; autograd's threads have the mode of whoever called backward()."""
    if _options is not None and _threads.mode is None:
        _threads.mode = _make_mode(_torch, _options)
        _threads.mode.__enter__()
