# SPDX-License-Identifier: MIT
"""Backward work under the module whose forward it differentiates: `backward="module"`.

Autograd runs the nodes of one forward thread in the reverse order of their making, so it is enough
to see where it crosses from one module into another: at the node that made a module's output it
enters the module, at the node that made a module's input it is back in whatever made that. Those
nodes get a hook, which puts the thread that runs them (autograd's own, for CUDA) where the module
stands below `backward`. Costs some microseconds a module call and hook: measured in docs/python.md.
"""
import threading

from . import _api

_native = _api._native


class _Thread(threading.local):
    """forward: modules that this thread is in. open: spans of modules that its backward is in."""

    def __init__(self):
        self.forward = ()   # ids of names
        self.open = []      # (context, begin)


_thread = _Thread()
_base = 0                   # the context of the backward that runs now
_contexts = {}              # (base, names): contexts, outermost first; bounded by _CONTEXTS_MAX
_CONTEXTS_MAX = 65536
_threads = []               # lists of open spans, of every thread that ran hooks in this backward
_lock = threading.Lock()


def _chain(names):
    """Contexts of a module and of all that it stands in, outermost first."""
    key = (_base, names)
    found = _contexts.get(key)
    if found is None:
        if len(_contexts) >= _CONTEXTS_MAX:
            _contexts.clear()
        above = _chain(names[:-1]) if names else ()
        up = above[-1] if above else _base
        found = above + (_native.context_child(up, names[-1]),) if names else ()
        _contexts[key] = found
    return found


def _go(names):
    """This thread's backward is in the module `names` from now on."""
    chain, spans = _chain(names), _thread.open
    same = 0
    while same < len(spans) and same < len(chain) and spans[same][0] == chain[same]:
        same += 1
    for context, begin in reversed(spans[same:]):
        _native.span_end(context, begin)
    del spans[same:]
    for context in chain[same:]:
        spans.append((context, _native.span_begin()))
    _native.context_set(chain[-1] if chain else _base)
    if spans is not None and not any(spans is known for known in _threads):
        with _lock:
            _threads.append(spans)


def _hook(tensor, names):
    """At the node that made `tensor`, the backward enters `names`; whoever came first holds."""
    node = tensor.grad_fn
    if node is None or getattr(tensor, "_protond_node", None) is node:
        return
    tensor._protond_node = node
    if hasattr(node, "register_prehook"):
        node.register_prehook(lambda grads: _go(names))
    else:  # before torch 2.0
        tensor.register_hook(lambda grad: _go(names))


def _tensors(value, torch, depth=3):
    if isinstance(value, torch.Tensor):
        yield value
    elif depth > 0 and isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one, torch, depth - 1)
    elif depth > 0 and isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one, torch, depth - 1)


def call(torch, function, module, name, args, kwargs):
    """Calls the module; what its backward will cross is hooked."""
    if not torch.is_grad_enabled():
        return function(module, *args, **kwargs)
    above = _thread.forward
    for value in (args, kwargs):
        for tensor in _tensors(value, torch):
            _hook(tensor, above)
    _thread.forward = above + (name,)
    try:
        out = function(module, *args, **kwargs)
        for tensor in _tensors(out, torch):
            _hook(tensor, _thread.forward)
        return out
    finally:
        _thread.forward = above


def begin(torch, args, kwargs):
    """Within the scope `backward`: the nodes of the roots belong to no module."""
    global _base
    _base = _native.context_get()
    for value in (args, kwargs):
        for tensor in _tensors(value, torch):
            if tensor.grad_fn is not None:
                if hasattr(tensor.grad_fn, "register_prehook"):
                    tensor.grad_fn.register_prehook(lambda grads: _go(()))


def end():
    """All threads' spans end; the caller's thread is its own again."""
    with _lock:
        for spans in _threads:
            for context, start in reversed(spans):
                _native.span_end(context, start)
            del spans[:]
        del _threads[:]
    _native.context_set(0)
