# SPDX-License-Identifier: MIT
"""Modes of backends as objects, in place of their strings: as triton.profiler.mode.

str(mode) is the string. The options of intra-kernel instrumentation are checked here; protond does
not record it yet.
"""
from __future__ import annotations

import dataclasses
import enum
from typing import Any, Dict, List, Type, Union

from . import _api


class METRIC_TYPE(enum.Enum):
    CYCLE = "cycle"


class BUFFER_STRATEGY(enum.Enum):
    CIRCULAR = "circular"
    FLUSH = "flush"


class BUFFER_TYPE(enum.Enum):
    SHARED = "shared"
    GLOBAL = "global"


class SAMPLING_STRATEGY(enum.Enum):
    NONE = "none"
    SELECTIVE = "selective"


class GRANULARITY(enum.Enum):
    CTA = "cta"
    WARP = "warp"
    WARP_2 = "warp_2"
    WARP_4 = "warp_4"
    WARP_8 = "warp_8"
    WARP_GROUP = "warp_group"
    WARP_GROUP_2 = "warp_group_2"
    WARP_GROUP_4 = "warp_group_4"
    WARP_GROUP_8 = "warp_group_8"


class Optimize(enum.Enum):
    TIMESHIFT = "time_shift"
    SCHED_STORES = "sched_stores"
    SCHED_BARRIERS = "sched_barriers"
    CLOCK32 = "clock32"

    def __str__(self) -> str:
        return self.value


def _by_value(kind: Type[enum.Enum]) -> Dict[str, Any]:
    return {member.value: member for member in kind}


metric_types = _by_value(METRIC_TYPE)
buffer_strategies = _by_value(BUFFER_STRATEGY)
buffer_types = _by_value(BUFFER_TYPE)
sampling_strategies = _by_value(SAMPLING_STRATEGY)
granularities = _by_value(GRANULARITY)
optimizations = _by_value(Optimize)
_FORMATS = {name: name for name in _api._FORMATS}


def _known(field: str, value: Any, choices: Dict[str, Any]) -> Any:
    """A choice, given by its name or as itself. ValueError for anything else."""
    if isinstance(value, str) and value in choices:
        return choices[value]
    if value not in choices.values():
        raise ValueError(f"Unknown {field}: {value}")
    return value


@dataclasses.dataclass(frozen=True)
class BaseMode:
    """A mode by its name, without options."""
    name: str

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class PCSampling(BaseMode):
    """interval: cycles between two samples. ValueError unless positive."""
    name: str = dataclasses.field(default="pcsampling", init=False)
    interval: int = 1000

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise ValueError(f"interval={self.interval}: must be a positive integer")

    def __str__(self) -> str:
        return f"{self.name}:interval={self.interval}"


@dataclasses.dataclass(frozen=True)
class PeriodicFlushing(BaseMode):
    """format: one that `protonview help export` lists, else ValueError."""
    name: str = dataclasses.field(default="periodic_flushing", init=False)
    format: str = "hatchet"

    def __post_init__(self) -> None:
        _known("format", self.format, _FORMATS)

    def __str__(self) -> str:
        return f"{self.name}:format={self.format}"


@dataclasses.dataclass(frozen=True)
class InstrumentationMode(BaseMode):
    """What the modes of intra-kernel instrumentation have in common.

    Each option is a member of its enum or that member's name; optimizations also a string of names
    with commas between. buffer_size is in bytes, 0 the default. ValueError: "Unknown FIELD: VALUE".
    """
    metric_type: Union[str, METRIC_TYPE] = METRIC_TYPE.CYCLE
    sampling_strategy: Union[str, SAMPLING_STRATEGY] = SAMPLING_STRATEGY.NONE
    sampling_options: str = ""
    granularity: Union[str, GRANULARITY] = GRANULARITY.WARP
    buffer_strategy: Union[str, BUFFER_STRATEGY] = BUFFER_STRATEGY.CIRCULAR
    buffer_type: Union[str, BUFFER_TYPE] = BUFFER_TYPE.SHARED
    buffer_size: int = 0
    optimizations: Union[str, List[Optimize]] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        for field, choices in (("metric_type", metric_types), ("sampling_strategy", sampling_strategies),
                               ("granularity", granularities), ("buffer_strategy", buffer_strategies),
                               ("buffer_type", buffer_types)):
            object.__setattr__(self, field, _known(field, getattr(self, field), choices))
        given = self.optimizations
        if isinstance(given, str):
            given = [name.strip() for name in given.split(",")] if given else []
        object.__setattr__(self, "optimizations", [_known("optimization", one, optimizations) for one in given])

    def __str__(self) -> str:
        options = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)[1:]}
        options["optimizations"] = ",".join(map(str, self.optimizations))
        return ":".join([self.name, *(f"{name}={value}" for name, value in options.items())])


@dataclasses.dataclass(frozen=True)
class Default(InstrumentationMode):
    name: str = dataclasses.field(default="default", init=False)


@dataclasses.dataclass(frozen=True)
class MMA(InstrumentationMode):
    name: str = dataclasses.field(default="mma", init=False)
