# SPDX-License-Identifier: MIT
"""A tree as the page that `protonview report` writes, for notebooks."""
import html
import json
import os
import subprocess
import tempfile
from typing import Any, Dict, List, Optional

from . import _where

MOST = 8 << 20  # bytes of a page: a notebook keeps each
HEIGHT = 640


def _entries(graph: Any, rows: Dict[Any, Dict[str, Any]], own: List[str], inclusive: List[str]) -> List[Dict[str, Any]]:
    """A .hatchet file's entries, of the columns that are each node's own."""
    made: Dict[Any, Dict[str, Any]] = {}
    roots = []
    for node in graph.nodes:
        row = rows.get(node, {})
        values = {name: row[name] for name in own if row.get(name) is not None and row[name] == row[name]}
        made[node] = {"frame": {"name": node.frame["name"], "type": node.frame.get("type", "function")},
                      "metrics": values, "children": []}
        (made[node.parent]["children"] if node.parent is not None else roots).append(made[node])
    if len(roots) != 1:
        roots = [{"frame": {"name": "ROOT", "type": "function"}, "metrics": {}, "children": roots}]
    roots[0]["metrics"] = {**{name: 0 for name in inclusive}, **roots[0]["metrics"]}
    return [*roots, {}]


def of_graph_frame(gf: Any, rows: Dict[Any, Dict[str, Any]]) -> Optional[str]:
    """HTML with the page inside; None where it cannot be made, so that the notebook shows the object's name."""
    skip = {"name", "node", *gf.inc_metrics}
    own = [name for name in gf.dataframe.columns if name not in skip]
    try:
        text = json.dumps(_entries(gf.graph, rows, own, gf.exc_metrics), default=str)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tree.hatchet")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            made = subprocess.run([_where.tool("protonview"), "report", path, "-o", "-"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except (OSError, RecursionError, RuntimeError):
        return None
    if made.returncode != 0 or len(made.stdout) > MOST:
        return None
    # Of an origin of its own: it sees nothing of the notebook.
    return (f'<iframe sandbox="allow-scripts" style="width:100%;height:{HEIGHT}px;border:0" '
            f'srcdoc="{html.escape(made.stdout.decode("utf-8", "replace"))}"></iframe>')
