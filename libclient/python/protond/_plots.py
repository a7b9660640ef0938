# SPDX-License-Identifier: MIT
"""What analysis.Analysis.plot() draws, by matplotlib, which is asked for only here.

Names are a job's text: they are cut, what does not print is replaced, and none is taken for mathematics or as hidden.
"""
from typing import Any, Callable, Dict, List, Tuple

from . import _api

LONGEST = 48   # characters of a name
MOST = 12      # lines of one picture
COLORS = {"compute": "#4477aa", "comm": "#ee7733", "copy": "#009988", "idle_launch": "#ddaa33", "idle_gap": "#88ccaa",
          "idle_queued": "#cc6677", "idle_unknown": "#7a6a9a", "idle_host": "#9aa2ae"}  # those of the page
BESIDE = {"loc": "upper left", "bbox_to_anchor": (1, 1)}  # a legend hides nothing
SEVERITIES = {"HIGH": "#b42318", "MEDIUM": "#f2c744", "LOW": "#1f7a45"}


def _label(name: str) -> str:
    name = name if len(name) <= LONGEST else name[:LONGEST * 2 // 3] + "…" + name[-(LONGEST // 3 - 1):]
    return " " + "".join(c if c.isprintable() else "\ufffd" for c in name).replace("\\", "\u2216").replace("$", "\\$")


def _rows(ax: Any, labels: List[str], bars: List[List[Tuple[float, str]]], what: str) -> None:
    """Bars from the top down; each of parts (value, colour)."""
    for y, parts in enumerate(bars):
        left = 0.0
        for value, color in parts:
            ax.barh(y, value, left=left, color=color)
            left += value
    ax.set_yticks(list(range(len(labels))))
    ax.set_yticklabels([_label(name) for name in labels])
    ax.invert_yaxis()
    ax.set_xlabel(what)


def _operations(analysis: Any, ax: Any, n: int = 10, by: str = "name") -> None:
    rows = analysis.top_operations(n, by)
    _rows(ax, [r["display"] for r in rows], [[(r["total_ms"] or 0.0, COLORS["compute"])] for r in rows], "ms")


def _bottlenecks(analysis: Any, ax: Any, severity: str = "LOW") -> None:
    rows = [v for v in analysis.bottlenecks(severity) if v.share is not None]
    _rows(ax, [f"{v.severity} {v.type}" for v in rows], [[(100 * v.share, SEVERITIES[v.severity])] for v in rows], "%")


def _efficiency(analysis: Any, ax: Any) -> None:
    gpus = analysis.efficiency()
    _rows(ax, [f"GPU {gpu}" for gpu in gpus], [[(100 * share, COLORS.get(part, "#77aadd")) for part, share in parts.items()] for parts in gpus.values()], "%")
    used = {part: None for parts in gpus.values() for part, share in parts.items() if share > 0}
    handles = [ax.barh(0, 0, color=COLORS.get(part, "#77aadd")) for part in used]
    if handles:
        ax.legend(handles, [_label(part.replace("_", ": ", 1)) for part in used], **BESIDE)


def _series(analysis: Any, ax: Any, name: Any = None) -> None:
    """Those of one unit, which one axis can show: the first one's."""
    found = analysis.series(name)
    shown = [s for s in found if s["unit"] == found[0]["unit"]][:MOST]
    drawn = [ax.plot(s["t"], s["v"], drawstyle="steps-post")[0] for s in shown]
    ax.set_xlabel("s")
    if drawn:
        ax.set_ylabel(_label(found[0]["unit"] or ""))
        ax.legend(drawn, [_label(s["name"]) for s in shown], **BESIDE)
    if len(found) > len(shown):
        ax.set_title(f"{len(shown)} of {len(found)} series: name chooses")


KINDS: Dict[str, Callable[..., None]] = {"operations": _operations, "bottlenecks": _bottlenecks, "efficiency": _efficiency, "series": _series}


def plot(analysis: Any, what: str, ax: Any, more: Dict[str, Any]) -> Any:
    if what not in KINDS:
        raise ValueError(f"plot draws one of {', '.join(KINDS)}")
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise _api.Error("matplotlib is not installed, and draws this: install it, or use the lists that the other methods give") from None
        ax = pyplot.subplots(figsize=(10, 5), constrained_layout=True)[1]  # room for names
    KINDS[what](analysis, ax, **more)
    return ax
