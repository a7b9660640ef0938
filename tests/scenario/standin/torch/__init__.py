# SPDX-License-Identifier: MIT
"""A stand-in for PyTorch: the entry points that protond.torch wraps, and no maths at all.

It says what torch says where a tool may hook in (modules, autograd, optimizers, loaders,
collectives, CUDA graphs) and does nothing inside. For tests of names alone; whatever is measured
must be measured with torch.

STANDIN=old: as before torch 2.0, without hooks for all optimizers and without torch.compiler.
STANDIN=bare: without torch.optim.Optimizer, a torch that is not as expected.
STANDIN=broken: the import fails.
"""
import os

if os.environ.get("STANDIN") == "broken":
    raise OSError("libstandin.so: cannot open shared object file")

__version__ = "0+standin"

_grad = [True]


def is_grad_enabled():
    return _grad[-1]


class no_grad:
    def __enter__(self):
        _grad.append(False)

    def __exit__(self, *exc):
        _grad.pop()


class Tensor:
    grad_fn = None

    def __init__(self, shape=()):
        self.shape = shape

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, i):
        if not 0 <= i < self.shape[0]:
            raise IndexError(i)
        return Tensor(self.shape[1:])

    def __eq__(self, other):
        """Element by element."""
        return Tensor(self.shape)

    __hash__ = object.__hash__

    def __bool__(self):
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def sum(self):
        return self

    def item(self):
        return 0.0

    def backward(self):
        autograd.backward(self)


def zeros(*shape, requires_grad=False):
    return Tensor(shape)


class _C:
    """torch's extension module has nothing here."""


from . import autograd, cuda, distributed, nn, optim, utils  # noqa: E402

if os.environ.get("STANDIN") != "old":
    from . import compiler  # noqa: F401
