# SPDX-License-Identifier: MIT. Stand-in.


def backward(tensors, grad_tensors=None):
    return None


def grad(outputs, inputs):
    return tuple(inputs)
