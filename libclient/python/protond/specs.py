# SPDX-License-Identifier: MIT
"""Peak figures of GPUs: what `util` measures kernels against.

They are those of Triton Proton, so that `util` means the same in both, and those of protonview
(viewer/analysis/metrics_peak.c). protond knows no architecture that Proton does not: CUDA 80, 89, 90 and 100,
HIP gfx90a, gfx942 and gfx950. Only the bytes of CUDA devices are known whatever their architecture is.

Clocks are in kHz, as a .hatchet file has them (1980000 is 1.98 GHz) and as Proton's arithmetic takes
them; the text of Proton's documentation says GHz, which would be a million times too little. May be
called from any thread.
"""
from __future__ import annotations

from typing import Callable, Dict

# Operations a second at 8 bits from (SMs or CUs, kHz); another width has them in inverse proportion.
_FLOPS8: Dict[str, Dict[str, Callable[[float, float], float]]] = {
    "CUDA": {
        "80": lambda sms, khz: 624e12,
        "89": lambda sms, khz: 330.3e12,
        "90": lambda sms, khz: sms / 114 * (khz / 1755e3) * 1513e12,  # 1513e12: of 114 SMs at 1755 MHz
        "100": lambda sms, khz: sms * 16384 * khz * 1e3,
    },
    "HIP": {
        "gfx90a": lambda cus, khz: 1024 * cus * khz * 1e3,  # its INT8 rate: it has no FP8
        "gfx942": lambda cus, khz: 4096 * cus * khz * 1e3,
        "gfx950": lambda cus, khz: 8192 * cus * khz * 1e3,
    },
}
_BYTES: Dict[str, float] = {"gfx90a": 3.2e12, "gfx942": 5.3e12, "gfx950": 8.0e12}


# Under Proton's names, called as there: max_flops() and max_bps() are what to use.
flops_by_device: Dict[str, Dict[str, Callable[..., float]]] = {
    kind: {arch: lambda width, num_sms=0, clock_rate=0, peak=peak, **_: peak(num_sms, clock_rate) / (width / 8)
           for arch, peak in peaks.items()} for kind, peaks in _FLOPS8.items()}
amd_bps_by_arch = _BYTES
amd_fp8_flops_by_arch = {arch: int(peak(1, 1) / 1e3) for arch, peak in _FLOPS8["HIP"].items()}  # a clock and unit


def max_flops(device_type: str, arch: str, width: int, num_sms: float, clock_rate: float) -> float:
    """The operations a second that a device can do at best.

    device_type: "CUDA" or "HIP".   arch: "90", "gfx942".   width: of an operand, in bits.
    num_sms: multiprocessors or compute units.   clock_rate: in kHz.
    Raises ValueError for a device that has no figures.
    """
    if device_type not in _FLOPS8:
        raise ValueError(f"Unsupported device type: {device_type}")
    if arch not in _FLOPS8[device_type]:
        raise ValueError(f"Unsupported architecture: {arch} (known: {', '.join(_FLOPS8[device_type])})")
    return _FLOPS8[device_type][arch](num_sms, clock_rate) / (width / 8)


def max_bps(device_type: str, arch: str, bus_width: float, memory_clock_rate: float) -> float:
    """The bytes a second that a device's memory can move at best.

    bus_width: in bits.   memory_clock_rate: in kHz, with two transfers a clock. HIP devices have a
    figure for their architecture instead, and CUDA devices need no arch.
    Raises ValueError for a device that has no figure.
    """
    if device_type == "CUDA":
        return 2 * bus_width * memory_clock_rate * 1e3 / 8
    if device_type != "HIP":
        raise ValueError(f"Unsupported device type: {device_type}")
    if arch not in _BYTES:
        raise ValueError(f"Unsupported architecture: {arch} (known: {', '.join(_BYTES)})")
    return _BYTES[arch]
