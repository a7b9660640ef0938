# SPDX-License-Identifier: MIT
"""Reads .hatchet files as Triton Proton's Python viewer does; needs neither llnl-hatchet nor pandas.

    from protond import viewer

    gf, metrics = viewer.parse(["tflop16/s", "time/ms"], "train.hatchet")
    viewer.print_tree(gf, metrics)
    gf.filter("MATCH ('*', k) WHERE k.'name' =~ 'matmul' AND k IS LEAF").dataframe["time (ns)"].sum()

The functions have the names, arguments and results of `triton.profiler.viewer`; docs/metrics.md has
the formulas. A GraphFrame holds a tree of nodes (`graph`) and a table with a row for each
(`dataframe`): a pandas.DataFrame indexed by node where pandas can be imported, else a Table. Rows stand
in the order of the tree, siblings sorted by name. What a node does not have is NaN. Nothing here is
locked: a GraphFrame is for one thread at a time.
"""
from __future__ import annotations

import argparse
import json
import math
import operator
import re
import sys
from collections import namedtuple
from functools import partial
from numbers import Real
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

from . import specs
from .metric import COMPUTE_METADATA_SCOPE_NAME as METADATA, FLOPS_WIDTHS

NAN = float("nan")

# A metric's column, and what one of each derived name is: in seconds, or in units of the column a second.
FactorDict = namedtuple("FactorDict", ["name", "factor"])
_SECONDS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_A_SECOND = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}  # dividing by these is exact, where it can be


def _times(name: str) -> FactorDict:
    return FactorDict(name, {f"{name}/{unit}": seconds for unit, seconds in _SECONDS.items()})


def _rates(thing: str, column: str) -> FactorDict:
    return FactorDict(column, {f"{prefix}{thing}/s": scale for prefix, scale in (("", 1), ("g", 1e9), ("t", 1e12))})


time_factor_dict, avg_time_factor_dict = _times("time"), _times("avg_time")
cpu_time_factor_dict, avg_cpu_time_factor_dict = _times("cpu_time"), _times("avg_cpu_time")
bytes_factor_dict = _rates("byte", "bytes")
default_flop_factor_dict = _rates("flop", "flops").factor
derivable_metrics = {name: rate for rate in (bytes_factor_dict, _rates("flop", "flops"),
                                             *(_rates(f"flop{w}", f"flops{w}") for w in FLOPS_WIDTHS))
                     for name in rate.factor}
_DURATIONS = {*time_factor_dict.factor, *avg_time_factor_dict.factor, *cpu_time_factor_dict.factor,
              *avg_cpu_time_factor_dict.factor}


class EmptyFilter(ValueError):
    """Nothing would be left after a filter."""


# --- tables -------------------------------------------------------------------------------------

class Column(list):
    """A column of a Table."""

    def tolist(self) -> List[Any]:
        return list(self)

    def sum(self) -> float:
        """Of what is a number; 0 for none."""
        return sum(filter(_is_number, self))


class Table:
    """What `dataframe` is without pandas: columns of one length by name, and the nodes as `index`."""

    def __init__(self, columns: Dict[str, Sequence[Any]], index: Sequence[Any]) -> None:
        self._columns, self.index = {name: Column(values) for name, values in columns.items()}, list(index)

    @property
    def columns(self) -> List[str]:
        return list(self._columns)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, name: Union[str, List[str]]) -> Any:
        """A Column; for a list of names a Table of these."""
        if isinstance(name, list):
            return Table({n: self._columns[n] for n in name}, self.index)
        return self._columns[name]

    def __setitem__(self, name: str, values: Sequence[Any]) -> None:
        if len(values) != len(self):
            raise ValueError(f"{len(values)} values for {len(self)} rows")
        self._columns[name] = Column(values)

    def iterrows(self) -> Iterator[Tuple[Any, Dict[str, Any]]]:
        """(node, {column: value}) of each row."""
        for i, node in enumerate(self.index):
            yield node, {name: values[i] for name, values in self._columns.items()}

    def reset_index(self) -> Table:
        """One with the nodes as its column "node"."""
        return Table({"node": self.index, **self._columns}, range(len(self)))

    def sum(self) -> Column:
        return Column(column.sum() for column in self._columns.values())

    def copy(self) -> Table:
        return Table(self._columns, self.index)


def _frame(columns: Dict[str, Sequence[Any]], index: Sequence[Any]) -> Any:
    try:
        import pandas
    except ImportError:
        return Table(columns, index)
    return pandas.DataFrame(columns, index=pandas.Index(index, name="node", dtype=object))


def _rows(frame: Any) -> Dict[Node, Dict[str, Any]]:
    """{node: {column: value}}, of Python's own numbers: NumPy's would warn where there is nothing to warn of."""
    names = list(frame.columns)
    return {node: dict(zip(names, row)) for node, row in zip(frame.index, zip(*(frame[n].tolist() for n in names)))}


def _from_rows(rows: Dict[Node, Dict[str, Any]], graph: Graph) -> Any:
    names = {name: None for row in rows.values() for name in row}
    nodes = [node for node in graph.nodes if node in rows]
    return _frame({name: [rows[node].get(name, NAN) for node in nodes] for name in names}, nodes)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and value == value


def _sum(values: Sequence[Any]) -> Any:
    numbers = [value for value in values if _is_number(value)]
    return sum(numbers) if numbers else NAN


def _divide(a: Any, b: Any) -> float:
    if not (_is_number(a) and _is_number(b)):
        return NAN
    if b == 0:
        return math.copysign(math.inf, a) if a != 0 else NAN
    return a / b


# --- trees --------------------------------------------------------------------------------------

class Node:
    """A place in the tree. frame: {"name": text, "type": "function"}. parent: None at a root."""
    __slots__ = ("frame", "parent", "children", "_hatchet_nid", "_depth")

    def __init__(self, frame: Dict[str, str], parent: Optional[Node]) -> None:
        self.frame, self.parent = frame, parent
        self.children: List[Node] = []
        self._hatchet_nid = self._depth = -1
        if parent is not None:
            parent.children.append(self)

    def __lt__(self, other: Node) -> bool:
        return self._hatchet_nid < other._hatchet_nid

    def __repr__(self) -> str:
        return f"Node({self.frame})"

    def traverse(self, order: str = "pre") -> Iterator[Node]:
        """This node and all below it: a node before its children, with order "post" after them."""
        if order == "pre":
            yield self
        for child in self.children:
            yield from child.traverse(order)
        if order == "post":
            yield self


def _by_frame(node: Node) -> Tuple[str, str]:
    return node.frame["name"], node.frame.get("type", "")


class Graph:
    """The trees of `roots`; nodes: all of them, a node before its children. Siblings are sorted by name."""

    def __init__(self, roots: Sequence[Node]) -> None:
        self.roots = sorted(roots, key=_by_frame)
        self.nodes: List[Node] = []
        left = self.roots[::-1]
        while left:
            node = left.pop()
            node.children.sort(key=_by_frame)
            node._hatchet_nid, node._depth = len(self.nodes), node.parent._depth + 1 if node.parent else 0
            self.nodes.append(node)
            left.extend(reversed(node.children))

    def __len__(self) -> int:
        return len(self.nodes)

    def traverse(self, order: str = "pre") -> Iterator[Node]:
        for root in self.roots:
            yield from root.traverse(order)


class _Merge:
    """A new graph out of others, in which siblings of one name are one node."""

    def __init__(self) -> None:
        self.made: Dict[Any, Node] = {}

    def add(self, graph: Graph, frame: Any) -> Dict[Node, Dict[str, Any]]:
        """The frame's rows on new nodes. A node without a row is left out and its children move up. Where rows
        meet, numbers are added up, and of all else the first row's value stands."""
        rows, new, met = _rows(frame), {None: None}, {}  # type: Any, Dict[Any, Any], Dict[Node, List[Any]]
        for node in graph.nodes:
            new[node] = new[node.parent]
            if node in rows:
                key = (new[node.parent], _by_frame(node))
                if key not in self.made:
                    self.made[key] = Node(node.frame, new[node.parent])
                new[node] = self.made[key]
                met.setdefault(new[node], []).append(rows[node])
        return {node: got[0] if len(got) == 1 else {
            name: _sum([row[name] for row in got]) if any(_is_number(row[name]) for row in got) else got[0][name]
            for name in got[0]} for node, got in met.items()}

    def graph(self) -> Graph:
        return Graph([node for node in self.made.values() if node.parent is None])


class GraphFrame:
    """A tree and its values: what users of Proton need of llnl-hatchet's class of that name.

    graph: a Graph.   dataframe: its table, free to be changed.
    exc_metrics: columns of what is each node's own; inc_metrics: of what holds the nodes below too.
    """

    def __init__(self, graph: Graph, dataframe: Any, exc_metrics: Sequence[str] = (),
                 inc_metrics: Sequence[str] = ()) -> None:
        self.graph, self.dataframe = graph, dataframe
        self.exc_metrics, self.inc_metrics = list(exc_metrics), list(inc_metrics)

    def _repr_html_(self) -> Optional[str]:
        """The page of `protonview report`, which a notebook shows; None: where there is no protonview."""
        try:
            from . import _page
        except ImportError:  # this module alone
            return None
        return _page.of_graph_frame(self, _rows(self.dataframe))

    def show_metric_columns(self) -> List[str]:
        return self.exc_metrics + self.inc_metrics

    def copy(self) -> GraphFrame:
        """With a table of its own, on the same graph."""
        return GraphFrame(self.graph, self.dataframe.copy(), self.exc_metrics, self.inc_metrics)

    def update_inclusive_columns(self) -> None:
        """Writes "X (inc)" for each exclusive X: what the subtree has together, NaN where it has nothing."""
        rows = _rows(self.dataframe)
        for name in self.exc_metrics:
            sums: Dict[Node, Any] = {}
            for node in reversed(self.graph.nodes):
                sums[node] = _sum([rows[node][name] if node in rows else NAN, *(sums[c] for c in node.children)])
            self.dataframe[f"{name} (inc)"] = [sums[node] for node in self.dataframe.index]
            if f"{name} (inc)" not in self.inc_metrics:
                self.inc_metrics.append(f"{name} (inc)")

    def squash(self, update_inc_cols: bool = True) -> GraphFrame:
        """A new one of the nodes that have a row; siblings of one name become one, their numbers added up."""
        merge = _Merge()
        rows = merge.add(self.graph, self.dataframe)
        graph = merge.graph()
        new = GraphFrame(graph, _from_rows(rows, graph), self.exc_metrics, self.inc_metrics)
        if update_inc_cols:
            new.update_inclusive_columns()
        return new

    def filter(self, filter_obj: Any, squash: bool = True, update_inc_cols: bool = True) -> GraphFrame:
        """A new one of the rows that pass, squashed unless told not to.

        filter_obj: a callable that is given a row (row["name"], row["node"], ...); or a query, which takes
        all nodes of all downward paths that match it, in one of hatchet's forms:
        ["*", {"name": "regex", "count": "> 3"}, (2, {"depth": 4})]: of "." (one node), "*" (any number), "+" (one
            or more) or a number, and of conditions for one node or for so many. A regex matches the whole name.
        'MATCH ("*")->(".", p) WHERE p."name" =~ "regex" AND p IS LEAF': with the conditions =~ (from the start
            on), =, <, <=, >, >=, IS LEAF and IS NOT LEAF, which all have to hold.
        Raises ValueError for a query that cannot be read, EmptyFilter where nothing passes.
        """
        if callable(filter_obj):
            keep = {row["node"] for _, row in self.dataframe.reset_index().iterrows() if filter_obj(row)}
        elif isinstance(filter_obj, (str, list)):
            read_query = _string_query if isinstance(filter_obj, str) else _object_query
            keep = self._matches(read_query(filter_obj))
        else:
            raise TypeError(f"a filter is a callable, a list or a string, not {type(filter_obj).__name__}")
        return self._keep(keep, squash, update_inc_cols)

    def _keep(self, nodes: Set[Node], squash: bool = True, update_inc_cols: bool = True) -> GraphFrame:
        rows = {node: row for node, row in _rows(self.dataframe).items() if node in nodes}
        if not rows:
            raise EmptyFilter("the filter leaves nothing")
        new = GraphFrame(self.graph, _from_rows(rows, self.graph), self.exc_metrics, self.inc_metrics)
        return new.squash(update_inc_cols) if squash else new

    def _matches(self, query: Query) -> Set[Node]:
        """A query is steps of one node each, or of any number (`many`). at[node]: the steps that a path can be at
        when it comes to the node; then, from below, only those from which it gets to the end."""
        steps: List[Tuple[bool, Test]] = []
        for quantifier, test in query:
            if quantifier not in (".", "*", "+") and not isinstance(quantifier, int):
                raise ValueError(f"{quantifier!r} in a query: use '.', '*', '+' or a number")
            steps += [(False, test)] * (quantifier if isinstance(quantifier, int) else quantifier != "*")
            steps += [(True, test)] * (quantifier in ("*", "+"))

        def reach(i: int) -> Set[int]:
            return {i} | (reach(i + 1) if i < len(steps) and steps[i][0] else set())

        after = [reach(i if many else i + 1) for i, (many, _) in enumerate(steps)]
        rows, at = _rows(self.dataframe), {}  # type: Any, Dict[Any, Set[int]]
        for node in self.graph.nodes:
            reached = reach(0).union(*(after[i] for i in at.get(node.parent, ()))) - {len(steps)}
            at[node] = {i for i in reached if node in rows and steps[i][1](node, rows[node])}
        for node in reversed(self.graph.nodes):
            onward = {len(steps)}.union(*(at[child] for child in node.children))
            at[node] = {i for i in at[node] if after[i] & onward}
        return {node for node, found in at.items() if found}

    def sub(self, other: GraphFrame) -> GraphFrame:
        """self - other, on the nodes of both, matched by their paths of names; a number that one side lacks is 0.

        Where only one side has some of the nodes, the column "_missing_node" has 1 for those of self and 2 for
        those of other, else 0. Columns that are no metrics are those of self, where it has the node.
        """
        metrics = [name for name in dict.fromkeys(self.show_metric_columns() + other.show_metric_columns())
                   if name in self.dataframe.columns and name in other.dataframe.columns]
        merge = _Merge()
        mine = merge.add(self.graph, self.dataframe)
        theirs = merge.add(other.graph, other.dataframe)
        graph, rows = merge.graph(), {}  # type: Graph, Dict[Node, Dict[str, Any]]
        for node in graph.nodes:
            a, b = mine.get(node, {}), theirs.get(node, {})
            rows[node] = {**(a or b), **{name: _sum([a.get(name), -b[name] if _is_number(b.get(name)) else NAN])
                                         for name in metrics}}
            if len(mine) < len(graph) or len(theirs) < len(graph):
                rows[node]["_missing_node"] = 2 if node not in mine else int(node not in theirs)
        return GraphFrame(graph, _from_rows(rows, graph), self.exc_metrics, self.inc_metrics)

    __sub__ = sub

    def tree(self, metric_column: Union[str, Sequence[str], None] = None, precision: int = 3,
             name_column: str = "name", expand_name: bool = False, depth: int = 10000,
             render_header: bool = False) -> str:
        """The tree as text, a line for each node: its metrics and its name; there are no colours and no header.

        metric_column: one column or several; None: the first inclusive metric. depth: generations shown.
        expand_name: names of more than 39 characters whole. Raises KeyError for a column that is not there.
        """
        columns = [metric_column] if isinstance(metric_column, str) else metric_column or self.inc_metrics[:1]
        rows, lines = _rows(self.dataframe), []  # type: Any, List[str]
        left = [(root, "", "") for root in reversed(self.graph.roots)]
        while left:
            node, indent, below = left.pop()
            if node._depth >= depth:
                continue
            name = str(rows[node][name_column])
            if len(name) > 39 and not expand_name:
                name = f"{name[:18]}...{name[-18:]}"
            side = {1: " \u25c0 ", 2: " \u25b6 "}.get(rows[node].get("_missing_node"), "")
            values = "".join(f"{rows[node][column]:.{precision}f} " for column in columns)
            lines.append(f"{indent}{values}{name}{side}\n")
            for i, child in enumerate(reversed(node.children)):
                own, more = ("\u251c\u2500 ", "\u2502  ") if i else ("\u2514\u2500 ", "   ")
                left.append((child, below + own, below + more))
        return "".join(lines)


# --- queries ------------------------------------------------------------------------------------

Test = Callable[[Node, Dict[str, Any]], bool]
Query = List[Tuple[Union[str, int], Test]]  # how many nodes, and what each has to be

_QUOTED = r'''(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')'''
_STEP = re.compile(rf"\s*\(\s*(?:(\d+|{_QUOTED})\s*(?:,\s*(\w+)\s*)?|(\w+)\s*)\)\s*(->|WHERE\b)?")
_CONDITION = re.compile(rf"\s*(\w+)\s*(?:IS\s+(NOT\s+)?LEAF\b|\.\s*({_QUOTED})\s*(=~|=|<=?|>=?)"
                        rf"\s*({_QUOTED}|[-+\w.]+))\s*(AND\b)?")
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
          "==": operator.eq, "!=": operator.ne, "<>": operator.ne}
_TEXT = {"=~": lambda text, regex: re.match(regex, text) is not None, "=": operator.eq}


def _all(tests: List[Test]) -> Test:
    return lambda node, row: all(test(node, row) for test in tests)


def _compare(name: str, sign: str, want: Any) -> Test:
    """A value of another type than `want` does not pass."""
    kind, known = (str, _TEXT) if isinstance(want, str) else (Real, _ORDER)
    if sign not in known:
        raise ValueError(f"a query asks whether {name} {sign} {want!r}")

    def test(node: Node, row: Dict[str, Any]) -> bool:
        value = node._depth if name == "depth" else row.get(name)
        return isinstance(value, kind) and known[sign](value, want)
    return test


def _unquote(text: str) -> str:
    return re.sub(r"""\\(["'\\])""", r"\1", text[1:-1])


def _string_query(text: str) -> Query:
    query: List[Tuple[Union[str, int], List[Test]]] = []
    tests: Dict[str, List[Test]] = {}
    found = re.match(r"\s*(MATCH)\b", text)
    at, more = found.end() if found else 0, found and "->"
    while more == "->":
        found = _STEP.match(text, at)
        if found is None:
            break
        at, (quantifier, name, alone, more) = found.end(), found.groups()
        number = quantifier is not None and quantifier.isdigit()
        query.append((int(quantifier) if number else _unquote(quantifier or "'.'"),
                      tests.setdefault(name or alone, []) if name or alone else []))
    while more in ("WHERE", "AND"):
        found = _CONDITION.match(text, at)
        if found is None or found[1] not in tests:
            break
        at, (name, inner, column, sign, want, more) = found.end(), found.groups()
        if column is None:
            tests[name].append(lambda node, row, inner=bool(inner): bool(node.children) == inner)
        else:
            tests[name].append(_compare(_unquote(column), sign, _unquote(want) if want[0] in "\"'" else float(want)))
    if more or text[at:].strip() or not query:
        raise ValueError(f"a query that cannot be read from here on: {text[at:].strip()[:60]!r}")
    return [(quantifier, _all(wanted)) for quantifier, wanted in query]


def _object_query(steps: List[Any]) -> Query:
    def test_of(name: str, want: Any) -> Test:
        if not isinstance(want, str):
            return _compare(name, "=", want)
        order = re.match(r"(<=|>=|==|!=|<>|<|>)\s*([-+.\w]+)\s*\Z", want)
        number, text = order and _compare(name, order[1], float(order[2])), _compare(name, "=~", rf"(?:{want})\Z")
        return lambda node, row: text(node, row) or bool(number and number(node, row))

    pairs = [step if isinstance(step, tuple) else (".", step) if isinstance(step, dict) else (step, {})
             for step in steps]
    return [(quantifier, _all([test_of(*want) for want in wants.items()])) for quantifier, wants in pairs]


# --- files --------------------------------------------------------------------------------------

def _decode(data: Union[str, bytes]) -> Any:
    """JSON or hatchet_msgpack, told apart by the first byte."""
    if isinstance(data, str) or data[:1] < b"\x80":
        return json.loads(data)
    try:
        import msgpack
    except ImportError:
        raise ImportError("a hatchet_msgpack file needs the package msgpack (pip install msgpack); "
                          "a .hatchet file needs nothing") from None
    return msgpack.unpackb(data, raw=False, strict_map_key=False)


def remove_frames(database: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """What data.get() or a .hatchet file gives, without frames of Proton's metadata_state, and without nodes that
    neither have nor lead to a metric. Roots stay; the argument is not changed."""
    roots = {i: {**entry, "children": []} for i, entry in enumerate(database) if "frame" in entry}
    left = [(child, roots[i]) for i in roots for child in database[i].get("children", ())]
    found = []  # (copy, its parent's copy), a parent before its children
    while left:
        entry, parent = left.pop()
        name = entry["frame"]["name"]
        if name != METADATA and not name.startswith(METADATA + ":"):
            found.append(({**entry, "children": []}, parent))
            left.extend((child, found[-1][0]) for child in entry.get("children", ()))
    for copy, parent in reversed(found):
        if copy["metrics"] or copy["children"]:
            parent["children"].append(copy)
    return [roots.get(i, entry) for i, entry in enumerate(database)]


def get_raw_metrics(file: Any) -> Tuple[GraphFrame, List[str], List[str], Dict[str, Any]]:
    """What read() gives, of an open file (text or binary) or of what data.get() gave, and without "(inc)" columns.

    What remove_frames() removes is left out. Raises ValueError for what is no .hatchet file.
    """
    database = file if isinstance(file, list) else _decode(file.read())
    if not isinstance(database, list) or not any("frame" in entry for entry in database):
        raise ValueError("not a .hatchet file: it has no root frame")
    left = [(entry, None) for entry in remove_frames(database) if "frame" in entry]
    rows: Dict[Any, Dict[str, Any]] = {}
    while left:
        entry, parent = left.pop()
        node = Node(entry["frame"], parent)
        rows[node] = {"name": entry["frame"]["name"], **entry["metrics"]}
        left.extend((child, node) for child in reversed(entry["children"]))
    graph = Graph([node for node in rows if node.parent is None])
    frame = _from_rows(rows, graph)
    inclusive = [name for name in rows[graph.roots[-1]] if name != "name"]
    return (GraphFrame(graph, frame, inclusive), inclusive,
            [name for name in frame.columns if name not in inclusive],
            next((entry for entry in database if "frame" not in entry), {}))


def read(filename: Any) -> Tuple[GraphFrame, List[str], List[str], Dict[str, Any]]:
    """(GraphFrame, inclusive metrics, exclusive metrics, devices) of a file: its path, or the open file.

    Inclusive are the metrics that ROOT carries; they have a column "X (inc)" too. Exclusive are all other
    columns, "name" and "device_id" among them. devices: {"CUDA": {"0": {"arch": "90", "num_sms": 132,
    "clock_rate": kHz, "memory_clock_rate": kHz, "bus_width": bits}}}. A hatchet_msgpack file needs the package
    msgpack (ImportError). Raises AssertionError, as Proton does, for a file without any metric.
    """
    if not hasattr(filename, "read"):
        with open(filename, "rb") as file:
            return read(file)
    result = get_raw_metrics(filename)
    if result[1] + result[2] == ["name"]:
        raise AssertionError("No metrics found in the input file")
    result[0].update_inclusive_columns()
    return result


# --- metrics ------------------------------------------------------------------------------------

def match_available_metrics(metrics: Union[str, Sequence[str]], inclusive_metrics: List[str],
                            exclusive_metrics: List[str]) -> List[str]:
    """The columns of metrics, which are asked for in any case, with or without a unit: "time" is "time (ns) (inc)".

    Raises RuntimeError when none of them is there.
    """
    found = []
    for metric in [metrics] if isinstance(metrics, str) else metrics:
        for raw in inclusive_metrics + exclusive_metrics:
            if metric.lower() in (raw, raw.split("(")[0].strip().lower()):
                found.append(f"{raw} (inc)" if raw in inclusive_metrics else raw)
                break
    if not found:
        raise RuntimeError(f"Metric {metrics} is not found; `protonview --list` names those of a file")
    return found


def _devices(frame: Any, device_info: Dict[str, Any]) -> List[Optional[Tuple[str, Dict[str, Any]]]]:
    """(type, device) of each row; None for a row on none, or on one that the file does not describe."""
    known = {(type_, number): (type_, device) for type_, devices in device_info.items()
             for number, device in devices.items()}
    if not {"device_id", "device_type"} <= set(frame.columns):
        return [None] * len(frame)
    return [known.get(key) for key in zip(frame["device_type"].tolist(), frame["device_id"].tolist())]


def _min_time(df: Any, device_info: Dict[str, Any], peaks: Dict[str, Callable[[str, Any], float]]) -> Any:
    """peaks: of a column, what (type, device) can do of it in a second."""
    seconds, devices = [0.0] * len(df), _devices(df, device_info)
    for column in [column for column in peaks if column in df.columns]:
        for i, (on, value) in enumerate(zip(devices, df[column].tolist())):
            if on is not None and _is_number(value):
                seconds[i] += value / peaks[column](*on)
    return _frame({"min_time": seconds}, df.index)


def _max_flops(width: int, type_: str, device: Dict[str, Any]) -> float:
    return specs.max_flops(type_, device["arch"], width, device["num_sms"], device["clock_rate"])


def _max_bps(type_: str, device: Dict[str, Any]) -> float:
    return specs.max_bps(type_, device["arch"], device["bus_width"], device["memory_clock_rate"])


def get_min_time_flops(df: Any, device_info: Dict[str, Any]) -> Any:
    """The least seconds in which each row's device could do the row's own flops8 to flops64, one after the other.

    In the column "min_time" of a table with df's index; 0 where there is nothing to do, or no device. Raises
    ValueError for a device without peak figures.
    """
    return _min_time(df, device_info, {f"flops{width}": partial(_max_flops, width) for width in FLOPS_WIDTHS})


def get_min_time_bytes(df: Any, device_info: Dict[str, Any]) -> Any:
    """As get_min_time_flops(), of the row's own bytes."""
    return _min_time(df, device_info, {"bytes": _max_bps})


def _util(df: Any, seconds: List[Any], device_info: Dict[str, Any]) -> List[float]:
    if not {"bytes", *(f"flops{width}" for width in FLOPS_WIDTHS)} & set(df.columns):
        raise RuntimeError("Metric util is not found: it needs bytes, flops8, flops16, flops32 or flops64")
    least = map(max, get_min_time_flops(df, device_info)["min_time"].tolist(),
                get_min_time_bytes(df, device_info)["min_time"].tolist())
    return [_divide(value, time) if on is not None else NAN
            for value, time, on in zip(least, seconds, _devices(df, device_info))]


def _of_scopes(graph: Graph, frame: Any, own: List[Any]) -> List[Any]:
    """The time of scopes, which holds what is inside them; a node that has none gets its children's."""
    time = dict(zip(frame.index, own))
    for node in reversed(graph.nodes):
        if node in time and not _is_number(time[node]):
            time[node] = _sum([time.get(child, NAN) for child in node.children])
    return [time[node] for node in frame.index]


def _of_scopes_alone(graph: Graph, frame: Any, own: List[Any]) -> List[Any]:
    """The time of scopes without what is inside them; not below 0, since scopes of other threads may stand below."""
    time, inside = dict(zip(frame.index, own)), {}  # type: Any, Dict[Any, Any]
    for node in reversed(graph.nodes):
        value, below = time.get(node, NAN), inside.get(node, NAN)
        inside[node.parent] = _sum([inside.get(node.parent, NAN), value if _is_number(value) else below])
        if _is_number(value) and _is_number(below):
            time[node] = max(value - below, 0)
    return [time[node] for node in frame.index]


def _launched(frame: Any, times: Dict[str, List[Any]], own: List[Any]) -> List[Any]:
    """A node's own GPU time, and that of the kernels and copies right below it."""
    time = dict(zip(frame.index, own))
    work = {node for values in times.values() for node, value in zip(frame.index, values) if _is_number(value) and not node.children}
    for node in work:
        if node.parent in time and node.parent not in work:
            time[node.parent] = _sum([time[node.parent], time[node]])
    return [time[node] for node in frame.index]


_SELVES = {f"self_{name}": name for name in ("time", "gpu_time", "cpu_time")}


def derive_metrics(gf: GraphFrame, metrics: Sequence[str], inclusive_metrics: List[str], exclusive_metrics: List[str],
                   device_info: Dict[str, Any]) -> List[str]:
    """Adds the columns of the metrics asked for to gf; returns their names in that order.

    time/U, avg_time/U, cpu_time/U, avg_cpu_time/U (U: s, ms, us, ns); flop/s, flop8/s ... flop64/s and byte/s,
    each also with g or t before it; util; X/% of a metric X; and X itself. In a file without GPU work, time is that
    of its scopes (cpu_time), and an average is of their calls, where the file has these. Raises RuntimeError for a metric
    that the file lacks, ValueError for another unit or for a device without peak figures (util).

    self_time, self_gpu_time (with copies) and self_cpu_time, also with /U or /%: a node's own time, and that of the kernels and
    copies right below it; of scopes, without what is in the scopes inside.
    """
    frame, derived = gf.dataframe, []  # type: Any, List[str]

    def column(name: str) -> str:
        return match_available_metrics(name, inclusive_metrics, exclusive_metrics)[0]

    def has(name: str) -> bool:
        return any(raw.split("(")[0].strip().lower() == name for raw in inclusive_metrics + exclusive_metrics)

    of_scopes = has("cpu_time") and not has("time") and not has("copy_time")  # what "time" is, then

    def duration(name: str, unit: str) -> List[Any]:
        found = column("cpu_time" if name == "time" and of_scopes else name)
        had = found.partition("(")[2].partition(")")[0]
        if had not in _A_SECOND:
            raise ValueError(f"Metric {found} has no unit of time")
        values = [value / (_A_SECOND[had] / _A_SECOND[unit]) for value in frame[found].tolist()]
        return _of_scopes(gf.graph, frame, values) if name == "time" and of_scopes else values

    def own(name: str) -> List[Any]:
        """In nanoseconds."""
        found = column(name).replace(" (inc)", "")
        had = found.partition("(")[2].partition(")")[0]
        if had not in _A_SECOND:
            raise ValueError(f"Metric {found} has no unit of time")
        return [value / (_A_SECOND[had] / _A_SECOND["ns"]) for value in frame[found].tolist()]

    def alone(name: str) -> Tuple[List[Any], Any]:
        """self_X in nanoseconds, and what its share is of."""
        if name == "cpu_time" or (name == "time" and of_scopes):
            values = _of_scopes_alone(gf.graph, frame, own("cpu_time"))
            return values, _sum(values)
        times = {of: own(of) for of in (["time", "copy_time"] if name == "gpu_time" else ["time"]) if has(of)}
        values = [_sum(list(parts)) for parts in zip(*(times or {"time": own("time")}).values())]
        return _launched(frame, {of: own(of) for of in ("time", "copy_time") if has(of)}, values), _sum(values)

    for metric in metrics:
        name, _, unit = metric.partition("/")
        to = f"{metric} (inc)"
        if name in _SELVES and not has(name) and unit in ("", "%", *_SECONDS):
            to, (values, whole) = metric, alone(_SELVES[name])
            if unit == "%":
                values = [_divide(value, whole) * 100 for value in values]
            elif unit:
                values = [value / (_A_SECOND["ns"] / _A_SECOND[unit]) for value in values]
        elif metric == "util":
            to, values = metric, _util(frame, duration("time", "s"), device_info)
        elif metric in derivable_metrics:
            of, factor = derivable_metrics[metric]
            rates = map(_divide, frame[column(of)].tolist(), duration("time", "s"))
            values = [rate / factor[metric] for rate in rates]
        elif metric in _DURATIONS:
            average = name.startswith("avg_")
            values = duration(name[len("avg_"):] if average else name, unit)
            if average:
                scopes = has("calls") and (of_scopes or name == "avg_cpu_time")
                values = list(map(_divide, values, frame[column("calls" if scopes else "count")].tolist()))
        elif unit == "%" and name == "time" and of_scopes:
            values = duration(name, "s")
            values = [_divide(value, values[0]) * 100 for value in values]
        elif unit == "%":
            of = column(name)
            to = to if of.endswith("(inc)") else metric
            values = frame[of].tolist()
            whole = values[0] if of.endswith("(inc)") else _sum(values)
            values = [_divide(value, whole) * 100 for value in values]
        elif unit:
            raise ValueError(f"Unsupported unit {unit}")
        elif name == "time" and of_scopes:
            values = duration(name, "ns")
        else:
            to, values = column(name), None
        if values is not None:
            frame[to] = values
        derived.append(to)
        kept = gf.inc_metrics if to.endswith("(inc)") else gf.exc_metrics
        if to not in kept:
            kept.append(to)
    return derived


# --- what is shown ------------------------------------------------------------------------------

def filter_frames(gf: GraphFrame, include: Optional[str] = None, exclude: Optional[str] = None,
                  threshold: Optional[float] = None, metric: Optional[str] = None) -> GraphFrame:
    """What is left of gf. Regular expressions match from the start of the name on.

    include: all paths through frames that match.   exclude: frames that match go, with all below them.
    threshold: nodes whose column `metric` is at least that, and the nodes above them; 0 and None: all.
    """
    any_ = ("*", _all([]))
    if include:
        gf = gf._keep(gf._matches([any_, (".", _compare("name", "=~", include)), any_]))
    if exclude:
        gf = gf._keep(set(gf.graph.nodes) - gf._matches([(".", _compare("name", "=~", exclude)), any_]))
    if threshold:
        gf = gf._keep(gf._matches([any_, (".", _compare(str(metric), ">=", threshold))]))
    return gf


def parse(metrics: Sequence[str], filename: Any, include: Optional[str] = None, exclude: Optional[str] = None,
          threshold: Optional[float] = None) -> Tuple[GraphFrame, List[str]]:
    """read(), derive_metrics(), and filter_frames() by the first metric: (GraphFrame, the metrics' columns)."""
    gf, inclusive, exclusive, device_info = read(filename)
    derived = derive_metrics(gf, metrics, inclusive, exclusive, device_info)
    return filter_frames(gf, include, exclude, threshold, derived[0]), derived


def apply_diff_profile(gf: GraphFrame, derived_metrics: Sequence[str], diff_file: Any, metrics: Sequence[str],
                       include: Optional[str], exclude: Optional[str], threshold: Optional[float]) -> GraphFrame:
    """gf minus diff_file, in the derived metrics, which become the metrics of gf: see GraphFrame.sub()."""
    other, _ = parse(metrics, diff_file, include, exclude, threshold)
    for side in (gf, other):
        side.inc_metrics = [name for name in derived_metrics if name.endswith("(inc)")]
        side.exc_metrics = [name for name in derived_metrics if not name.endswith("(inc)")]
    return gf.sub(other)


def _file_function(name: str) -> str:
    file, at, function = name.rpartition("@")
    return f"{file.split('/')[-1].split(':')[0]}@{function}" if at else name


_FORMATS = {None: str, "full": str, "file_function_line": lambda name: name.split("/")[-1],
            "function_line": lambda name: name.split(":")[-1], "file_function": _file_function}


def format_frames(gf: GraphFrame, format: Optional[str]) -> GraphFrame:
    """Shortens Python's frames ("dir/file:line@function") in gf's column "name"; returns gf.

    format: None or "full", "file_function_line" (what is after the last slash), "function_line" (after the last
    colon) or "file_function" ("file@function"; a name without "@" stays). ValueError for another.
    """
    if format not in _FORMATS:
        raise ValueError(f"format={format!r}: use one of {', '.join(filter(None, _FORMATS))}")
    gf.dataframe["name"] = [_FORMATS[format](name) for name in gf.dataframe["name"].tolist()]
    return gf


def print_tree(gf: GraphFrame, metrics: Sequence[str], depth: int = 100, format: Optional[str] = None,
               print_sorted: bool = False) -> None:
    """Prints the tree with these columns; then, with print_sorted, all nodes but ROOT by the first one."""
    gf = format_frames(gf, format)
    print(gf.tree(metrics, expand_name=True, depth=depth))
    if print_sorted:
        print(f"Sorted kernels by metric {metrics[0]}")
        pairs = list(zip(gf.dataframe[metrics[0]].tolist(), gf.dataframe["name"].tolist()))[1:]
        pairs.sort(key=lambda pair: -pair[0] if _is_number(pair[0]) else math.inf)
        for value, name in pairs:
            print(f"{name[:100] + '...' if len(name) > 100 else name:105} {float(value):.4}")
    emit_warnings(gf, metrics)


def emit_warnings(gf: GraphFrame, metrics: Sequence[str]) -> None:
    """Prints what is odd about these columns."""
    if "bytes (inc)" in metrics and any(value < 0 for value in gf.dataframe["bytes (inc)"].tolist()):
        print("Warning: Negative byte values: a counter of the job has most likely overflowed\n")


def show_metrics(file_name: Any) -> None:
    """Prints the names of a file's metrics, as -m takes them."""
    _, inclusive, exclusive, _ = read(file_name)
    for kind, names in (("inclusive", inclusive), ("exclusive", exclusive)):
        print(f"Available {kind} metrics:")
        for name in names:
            if name != "name":
                print(f"- {name.split('(')[0].strip().lower()}")


# --- as a command -------------------------------------------------------------------------------

def _arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m protond.viewer", description="Prints the tree of a .hatchet file.")
    p.add_argument("-l", "--list", action="store_true", help="the metrics of the file")
    p.add_argument("-m", "--metrics", metavar="M,...", help="what is shown: time/ms, flops, tflop16/s, util, ...; those "
                   "that the file lacks are left out")
    p.add_argument("-i", "--include", metavar="REGEX", help="paths through frames that match from the start on")
    p.add_argument("-e", "--exclude", metavar="REGEX", help="all but frames that match, and what is below them")
    p.add_argument("-t", "--threshold", type=float, metavar="N", help="frames whose first metric is N at least")
    p.add_argument("-d", "--depth", type=int, default=100, metavar="N")
    p.add_argument("-f", "--format", choices=sorted(filter(None, _FORMATS)), default="full", help="of Python's frames")
    p.add_argument("--print-sorted", action="store_true", help="all frames too, by the first metric")
    p.add_argument("-diff", "--diff-profile", metavar="FILE", help="what this file is to be subtracted")
    p.add_argument("file", metavar="FILE")
    a = p.parse_args()
    if a.include and a.exclude:
        p.error("-i and -e cannot be used together")
    return a


def _there(metrics: List[str], filename: Any) -> List[str]:
    """Those that the file has; RuntimeError where it has none of them."""
    gf, inclusive, exclusive, device_info = read(filename)
    found, why = [], None
    for metric in metrics:
        try:
            derive_metrics(gf, [metric], inclusive, exclusive, device_info)
            found.append(metric)
        except RuntimeError as e:
            why = e
            print(f"Warning: {e}", file=sys.stderr)
    if not found and why is not None:
        raise RuntimeError("no metric of -m is in the file")
    return found


def main() -> None:
    """What Proton's command proton-viewer does; `protonview` does more, and faster."""
    a = _arguments()
    try:
        if a.list:
            show_metrics(a.file)
        elif a.metrics:
            metrics = _there(a.metrics.split(","), a.file)
            gf, derived = parse(metrics, a.file, a.include, a.exclude, a.threshold)
            if a.diff_profile:
                gf = apply_diff_profile(gf, derived, a.diff_profile, metrics, a.include, a.exclude, a.threshold)
            print_tree(gf, derived, a.depth, a.format, a.print_sorted)
    except (AssertionError, ImportError, OSError, RuntimeError, ValueError) as e:
        sys.exit(f"{a.file}: {e}")


if __name__ == "__main__":
    main()
