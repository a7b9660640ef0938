# SPDX-License-Identifier: MIT
"""Notebooks: a cell, or one expression, is recorded and its tree is printed below it.

    %load_ext protond

    %protond model(batch)

    %%protond -n train -m time/ms,count -d 4
    for batch in loader:
        ...

What torch does is named, from %load_ext on (see protond.torch). Nothing else is needed before: a cell
may be recorded when CUDA has been in use for hours. The session stays in the store: `protonview @last` shows it again.
"""
from __future__ import annotations

import argparse
import ast
import asyncio
import itertools
import json
import os
import select
import shlex
import subprocess
import sys
import time
from typing import Any, List, Optional, Tuple

from . import _api, _where, torch

STORED_S = 10.0
LOOK_S = 0.01

_Code = Tuple[Optional[Any], Optional[Any]]
_Stored = Tuple[int, str]  # id and uuid of a session
_numbers = itertools.count(1)  # of cells that got no name


class _Parser(argparse.ArgumentParser):
    """Says what is wrong as IPython does, instead of ending the process."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise _usage_error(f"%%protond: {message}\n{self.format_usage()}")


def _usage_error(text: str) -> Exception:
    try:
        from IPython.core.error import UsageError
    except ImportError:
        return ValueError(text)
    return UsageError(text)


def _parser() -> _Parser:
    parser = _Parser(prog="%%protond", add_help=False)
    add = parser.add_argument
    add("-n", "--name", help="name of the session; without it cell-PID-N")
    add("-m", "--metrics", help="metrics to show, as in protonview: time/ms,count,cpu_time/us")
    add("-d", "--depth", type=int, help="show so many generations")
    add("--cpu-off", action="store_true", help="scopes cost less and have no CPU time")
    return parser


def _options(line: str) -> argparse.Namespace:
    try:
        words = shlex.split(line)
    except ValueError as e:  # a quotation mark without its other half
        raise _usage_error(f"%%protond: {e}")
    return _parser().parse_args(words)


# --- the cell -----------------------------------------------------------------------------------

def _compile(shell: Any, text: str) -> _Code:
    """(code of the statements, code of the last expression); either may be None.

    Magics and `!commands` inside are as in any cell. SyntaxError is the cell's own.
    """
    source = shell.transform_cell(text)
    name = shell.compile.cache(source, shell.execution_count, raw_code=text)
    tree = shell.transform_ast(shell.compile.ast_parse(source, name))
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = shell.compile(ast.Expression(tree.body.pop().value), name, "eval")
    return shell.compile(tree, name, "exec") if tree.body else None, last


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run(shell: Any, code: _Code) -> Any:
    """Jupyter runs cells in a task; this one suspends nowhere, so its scopes are the thread's own."""
    __tracebackhide__ = True  # IPython leaves such frames out
    statements, last = code
    in_loop = _in_loop()
    _api._native.loop(False)
    try:
        if statements is not None:
            exec(statements, shell.user_ns)
        return eval(last, shell.user_ns) if last is not None else None
    finally:
        _api._native.loop(in_loop)


# --- the session --------------------------------------------------------------------------------

def _start(name: str, cpu_off: bool) -> Optional[int]:
    live = set(_api._sessions)
    session = _api.start(name, cpu_off=cpu_off)
    if session in live:
        raise _usage_error(f"%%protond: a session named {name!r} is being recorded: finalize it, or "
                           "give another name with -n")
    return session


def _tool(name: str, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([_where.tool(name), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
                          env={**os.environ, "NO_COLOR": "1"})


def _newest(name: str) -> _Stored:
    """The newest session of that name; (0, "") when there is none."""
    view = _tool("protonview", "sessions", "--json", "--rows", "0")
    if view.returncode != 0:
        return 0, ""  # no database yet
    answer = json.loads(view.stdout)["data"]
    at = {column["name"]: i for i, column in enumerate(answer["columns"])}
    found = [(row[at["id"]], row[at["uuid"]]) for row in answer["rows"] if row[at["name"]] == name]
    return max(found, default=(0, ""))


def _stored(name: str, after: _Stored) -> str:
    """Waits until the session of that name that is newer than `after` is stored whole; its uuid.

    finalize() does not wait for that, and a name alone could be that of an older session.
    """
    end = time.monotonic() + STORED_S
    newest = _newest(name)
    while newest <= after:
        if time.monotonic() > end:
            raise _api.Error(f"the session {name!r} did not reach the daemon in {STORED_S:.0f} s: "
                             "`protonctl doctor` says what is wrong")
        select.select([], [], [], LOOK_S)
        newest = _newest(name)
    _tool("protonctl", "finalize", newest[1])  # where it fails, what is there is shown
    return newest[1]


def _print_tree(name: str, after: _Stored, options: argparse.Namespace) -> None:
    args: List[str] = ["tree", _stored(name, after)]
    if options.metrics is not None:
        args += ["-m", options.metrics]
    if options.depth is not None:
        args += ["-d", str(options.depth)]
    view = _tool("protonview", *args)
    print(view.stdout, end="")
    if view.stderr:
        print(view.stderr, end="", file=sys.stderr)


def _record(shell: Any, code: _Code, options: argparse.Namespace) -> Any:
    """Runs it in a session of its own; the tree is printed whatever becomes of it."""
    __tracebackhide__ = True
    name = options.name or f"cell-{os.getpid()}-{next(_numbers)}"
    after = _newest(name)
    torch._step_end()  # no step goes from one cell to another
    session = _start(name, options.cpu_off)
    try:
        return _run(shell, code)
    finally:
        if session is not None:
            _finish(session, name, after, options)


def _finish(session: int, name: str, after: _Stored, options: argparse.Namespace) -> None:
    """Nothing that goes wrong here may take the place of the cell's result, or of its exception."""
    torch._step_end()
    sys.stdout.flush()
    try:
        _api.finalize(session, None)
        _print_tree(name, after, options)
    except (_api.Error, ValueError, OSError) as e:
        print(f"protond: {e}", file=sys.stderr)


def load(ipython: Any) -> None:
    """Registers %protond and %%protond with an IPython shell, and names what torch does from now on.

    Called by %load_ext protond.
    """
    torch.install()

    def protond(line: str, cell: Optional[str] = None) -> Any:
        __tracebackhide__ = True
        options = _options(line if cell is not None else "")
        code = _compile(ipython, line if cell is None else cell)
        if not sys.platform.startswith("linux"):
            print("protond: records on Linux only", file=sys.stderr)
            return _run(ipython, code)
        _where.tool("protonview")  # a cell that could not be shown is not run
        return _record(ipython, code, options)

    protond.__doc__ = f"""Records a cell, or one expression, and prints its tree below it.

%protond EXPR
{_parser().format_help()}
The value is that of the last expression. An exception is shown as usual; the tree of what ran until
then is printed all the same. Top-level `await` is not possible inside.
"""
    # As IPython's decorators do: `f();` shows no value, and {} and $ in EXPR are Python's.
    protond._ipython_magic_output_can_be_silenced = True  # type: ignore[attr-defined]
    protond._ipython_magic_no_var_expand = True  # type: ignore[attr-defined]
    ipython.register_magic_function(protond, magic_kind="line_cell", magic_name="protond")
