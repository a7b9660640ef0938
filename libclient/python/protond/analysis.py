# SPDX-License-Identifier: MIT
"""What a session says of itself, as plain Python: verdicts, the dearest operations, how busy the GPUs were.

    import protond.analysis

    a = protond.analysis.open("@last")            # what protonview takes: a session, a .protond, a .hatchet
    for v in a.bottlenecks():
        print(v.severity, v.description, v.recommendation)
    a.frame("operations", n=20)                   # the same as a pandas.DataFrame, where pandas is installed
    a.plot("efficiency")                          # drawn, where matplotlib is

    protond.check(max_idle=0.2)                   # a training script's own test, of what was recorded of it: raises
                                                  # Failed, in words. protond.analysis.check("NAME", ...): of another

Each call asks `protonview --json` (docs/metrics.md#json, docs/bottlenecks.md) and waits for it: tenths of a second for a
large session. Nothing is kept but what was asked once; an Analysis of a session that goes on keeps its first answers. Raises
protond.Error with protonview's words where a session is not there or lacks what is asked for. For one thread at a time.
"""
import json
import subprocess
from typing import Any, Dict, List, NamedTuple, Optional

from . import _api
from ._where import tool

SEVERITIES = ("HIGH", "MEDIUM", "LOW")


class Failed(AssertionError):
    """check() found something. `verdicts`: the bottlenecks behind it, maybe none."""

    def __init__(self, words: str, verdicts: "List[Verdict]") -> None:
        super().__init__(words)
        self.verdicts = verdicts


class Verdict(NamedTuple):
    """One row of `protonview bottlenecks`, the worst first."""
    severity: str                  # one of SEVERITIES
    type: str                      # the rule's name: "data_loader"
    description: str               # what is slow, how much
    recommendation: Optional[str]  # what to do
    where: Optional[str]           # path in the tree
    share: Optional[float]         # of the whole that the description names, 0 to 1
    gain_ns: Optional[float]       # at most; None: not known
    gain_step_ns: Optional[float]  # the same for each step


class Analysis:
    """source: as protonview's SOURCE; db: a database other than the usual one."""

    def __init__(self, source: str = "@last", db: Optional[str] = None) -> None:
        self.source, self._db = source, db
        self._kept: Dict[Any, Dict[str, Any]] = {}
        number = self.summary()["id"]
        if source.startswith("@"):  # all later answers are of this one, whatever becomes the last
            self.source = str(number)

    def _ask(self, verb: str, *words: str) -> Dict[str, Any]:
        """The envelope's data."""
        key = (verb, *words)
        if key not in self._kept:
            command = [tool("protonview"), *(["--db", self._db] if self._db else []), verb, self.source, *words, "--json"]
            p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, encoding="utf-8")
            try:
                said = json.loads(p.stdout)
            except ValueError:
                raise _api.Error(p.stderr.strip() or f"protonview ended with {p.returncode}") from None
            if "error" in said:
                raise _api.Error(said["error"]["text"])
            self._kept[key] = said["data"]
        return self._kept[key]

    def _rows(self, verb: str, *words: str) -> List[Dict[str, Any]]:
        data = self._ask(verb, *words)
        names = [c["name"] for c in data["columns"]]
        return [dict(zip(names, row)) for row in data["rows"]]

    def summary(self) -> Dict[str, Any]:
        """What every answer of protonview has of the session: name, id, state, duration_ns, processes, devices (with busy_ns),
        launches, drops, notes, overhead, ..."""
        return dict(self._ask("flat", "-n", "1")["session"])

    def top_operations(self, n: int = 10, by: str = "name") -> List[Dict[str, Any]]:
        """Kernels and copies with the most time, or scopes where no GPU worked: name, display (the same for people: C++ names are
        demangled), calls, total_ms, share (0 to 1), avg_us, p50_us, p99_us. by: "name", "family" (gemm, norm, comm,
        ...) or "class"; n 0: all."""
        def scaled(value: Optional[float], factor: float) -> Optional[float]:
            return None if value is None else value * factor
        return [{"name": r["name"], "display": r["display"], "calls": r["count"], "total_ms": scaled(r["sum"], 1e-6),
                 "share": scaled(r["share"], 1e-2), "avg_us": scaled(r["avg"], 1e-3), "p50_us": scaled(r["p50"], 1e-3), "p99_us": scaled(r["p99"], 1e-3)}
                for r in self._rows("flat", "-n", str(n), "--by", by)]

    def bottlenecks(self, severity: str = "LOW") -> List[Verdict]:
        """Verdicts of at least this severity, the worst first."""
        if severity not in SEVERITIES:
            raise ValueError(f"severity is one of {', '.join(SEVERITIES)}")
        some = SEVERITIES[:SEVERITIES.index(severity) + 1]
        return [Verdict(r["severity"], r["rule"], r["words"], r["advice"], r["where"], r["share"], r["gain"], r["gain_step"])
                for r in self._rows("bottlenecks") if r["state"] == "found" and r["severity"] in some]

    def efficiency(self) -> Dict[str, Dict[str, float]]:
        """Of each GPU the parts of its time, shares that add up to 1: {"0": {"compute": 0.6, "idle_host": 0.4, ...}}; docs/metrics.md#parts
        has the words. Empty without a GPU."""
        found: Dict[str, Dict[str, float]] = {}
        for r in self._rows("breakdown"):
            if r["share"] is not None:
                found.setdefault(r["gpu"], {})[r["part"][:-len("_ns")]] = r["share"]
        return found

    def idle(self) -> Optional[float]:
        """Of all GPUs' time the share in which nothing ran, 0 to 1. None: no GPU's time is known."""
        devices = [d["busy_ns"] for d in self.summary()["devices"] if d.get("busy_ns") is not None]
        whole = len(devices) * (self.summary()["duration_ns"] or 0)
        return max(0.0, 1 - sum(devices) / whole) if whole else None

    def call_graph(self) -> Dict[str, Any]:
        """The tree: {"name", "kind", "metrics": {name: value}, "children": [...]}, from ROOT."""
        nodes: Dict[int, Dict[str, Any]] = {}
        for r in self._rows("tree"):
            at, parent, kind, name = r.pop("id"), r.pop("parent"), r.pop("kind"), r.pop("name")
            del r["depth"], r["display"]
            nodes[at] = {"name": name, "kind": kind, "metrics": {k: v for k, v in r.items() if v is not None}, "children": []}
            if parent in nodes:
                nodes[parent]["children"].append(nodes[at])
        return nodes[0]

    def series(self, name: Optional[str] = None) -> List[Dict[str, Any]]:
        """Numbers over time whose name has `name` in it: {"name", "unit", "pid", "rank", "t": [s], "v": [...]}."""
        found: Dict[Any, Dict[str, Any]] = {}
        for r in self._rows("series", *([name] if name else []), "-n", "0"):
            one = found.setdefault((r["series"], r["pid"]), {"name": r["series"], "unit": r["unit"], "pid": r["pid"], "rank": r["rank"], "t": [], "v": []})
            one["t"].append(r["time"] * 1e-9)
            one["v"].append(r["value"])
        return list(found.values())

    def steps(self, scope: Optional[str] = None, every: Optional[str] = None) -> List[Dict[str, Any]]:
        """A dict for each step of each process, in order: rank, pid, step, start, duration and pace in ns, the parts of its GPUs' time
        (None without a timeline), mark ("warm-up", "slow", None) and told, {name: value}. scope: what counts as a step, as in
        "handle"; every: windows of so long, as in "500ms", do."""
        found = []
        for r in self._rows("steps", *self._steps_are(scope, every)):
            told = {k[len("told."):]: r.pop(k) for k in list(r) if k.startswith("told.")}
            found.append({**r, "told": {k: v for k, v in told.items() if v is not None}})
        return found

    def throughput(self, scope: Optional[str] = None, every: Optional[str] = None) -> Dict[str, Optional[float]]:
        """Of the steps that are no warm-up, all processes together: iterations_per_sec, samples_per_sec, tokens_per_sec,
        flops_per_sec and mfu (0 to 1); None: steps were not told what it takes (docs/metrics.md#steps)."""
        return dict(self._ask("steps", *self._steps_are(scope, every))["throughput"])

    @staticmethod
    def _steps_are(scope: Optional[str], every: Optional[str]) -> List[str]:
        return [*(["--scope", scope] if scope else []), *(["--every", every] if every else [])]

    def frame(self, what: str = "operations", **more: Any) -> Any:
        """A pandas.DataFrame of "operations", "bottlenecks", "efficiency" (a row for each GPU), "steps" (a row for each) or "series" (a
        row for each number: name, unit, pid, rank, t, v). more: as the method of that name takes it. Raises protond.Error without pandas."""
        asked = {"operations": self.top_operations, "bottlenecks": self.bottlenecks, "efficiency": self.efficiency, "series": self.series,
                 "steps": self.steps}
        if what not in asked:
            raise ValueError(f"frame has one of {', '.join(asked)}")
        try:
            import pandas
        except ImportError:
            raise _api.Error("pandas is not installed, and a DataFrame is its: install it, or use the lists that the other methods give") from None
        got: Any = asked[what](**more)
        if what == "bottlenecks":
            return pandas.DataFrame(got, columns=Verdict._fields)
        if what == "efficiency":
            return pandas.DataFrame([{"gpu": gpu, **parts} for gpu, parts in got.items()])
        if what == "series":
            got = [{**{k: s[k] for k in ("name", "unit", "pid", "rank")}, "t": t, "v": v} for s in got for t, v in zip(s["t"], s["v"])]
        if what == "steps":
            got = [{**{k: v for k, v in s.items() if k != "told"}, **s["told"]} for s in got]
        return pandas.DataFrame(got)

    def plot(self, what: str = "operations", ax: Any = None, **more: Any) -> Any:
        """Draws "operations", "bottlenecks" (their shares), "efficiency" or "series" on matplotlib's axes `ax`, new ones where None, and
        returns them. more: as the method of that name takes it. Raises protond.Error without matplotlib."""
        from . import _plots
        return _plots.plot(self, what, ax, more)


def open(source: str = "@last", db: Optional[str] = None) -> Analysis:
    """An Analysis; raises protond.Error where there is no such session."""
    return Analysis(source, db)


def check(source: str = "@last", *, max_idle: Optional[float] = None, gate: Optional[str] = "HIGH", db: Optional[str] = None) -> Analysis:
    """Raises Failed where a verdict is of severity `gate` or worse (None: whatever they are), or the GPUs were idle for more than
    the share `max_idle`, 0 to 1, of the time (which must be known then), or nothing was recorded. Else the Analysis."""
    if max_idle is not None and not 0 <= max_idle <= 1:  # NaN is not, either
        raise ValueError(f"max_idle is a share, from 0 to 1, and {max_idle!r} is none")
    a = open(source, db)
    if gate and not a.top_operations(1):
        raise Failed(f"{a.summary()['name']}: nothing was recorded, of which gate={gate!r} could judge", [])
    verdicts = a.bottlenecks(gate) if gate else []
    words = [f"{v.severity} {v.type}: {v.description}" for v in verdicts]
    if max_idle is not None:
        idle = a.idle()
        if idle is None:
            words.append("max_idle: no GPU's time is known of this session")
        elif idle > max_idle:
            words.append(f"the GPUs were idle for {idle:.1%} of the time, more than {max_idle:.1%}")
            verdicts = verdicts or a.bottlenecks()
    if words:
        raise Failed(f"{a.summary()['name']}: " + "; ".join(words), verdicts)
    return a
