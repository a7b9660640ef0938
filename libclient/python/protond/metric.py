# SPDX-License-Identifier: MIT
"""Metrics as launch_metadata functions give them: as triton.profiler.metric."""
from __future__ import annotations

from typing import Any, Dict, Tuple

__all__ = ["COMPUTE_METADATA_SCOPE_NAME", "FLOPS_WIDTHS", "set_metric_kernels", "transform_tensor_metrics"]

COMPUTE_METADATA_SCOPE_NAME = "__proton_launch_metadata"  # the state of what computes a launch's metadata
FLOPS_WIDTHS = (8, 16, 32, 64)  # bits; "flopsN" is the work in operations of that width

# What a roofline is made of keeps one type, whatever a launch_metadata function gives.
_TYPES: Dict[str, Any] = {"bytes": int, "flops": float, **{f"flops{width}": float for width in FLOPS_WIDTHS}}


def _typed(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_typed(name, one) for one in value]
    try:
        return _TYPES[name](value) if name in _TYPES else value
    except (OverflowError, ValueError):  # NaN and infinity are no int
        return value


def transform_tensor_metrics(metrics: Dict[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Parts {name: value} into ({name: scalar}, {name: number or list}): what is no tensor, and tensors' values.

    "flops", "flops8" to "flops64" become float, "bytes" int. A tensor is read: as a number, or as a
    flat list when it has more than one element. One on a GPU is waited for; while its stream is being
    captured into a graph that is not possible, and it stays a tensor, which the graph will read.
    """
    from . import _api  # reading a profile needs none of it
    scalars, tensors = {}, {}
    for name, value in metrics.items():
        if not hasattr(value, "data_ptr"):
            scalars[name] = _typed(name, value)
        elif value.device.type == "cpu" or not _api._capturing():
            tensors[name] = _typed(name, value.flatten().tolist() if value.numel() > 1 else value.item())
        elif name in _TYPES:
            tensors[name] = value.double() if _TYPES[name] is float else value.long()
        else:
            tensors[name] = value
    return scalars, tensors


def set_metric_kernels(*args: Any, **kwargs: Any) -> None:
    """Does nothing, and need not: Proton compiles kernels here that write metrics from the GPU, which protond has
    ready."""
