# SPDX-License-Identifier: MIT. The checks of tests/gpu, which only a machine with a GPU runs: what they ask of protonview and protonctl is still
# asked right, by a recording.
import ast
import pathlib
import re
import subprocess

import pytest

from conftest import BUILD, WAIT, until
from test_replay import JOB, play

GPU = pathlib.Path(__file__).resolve().parents[1] / "gpu"
pytestmark = pytest.mark.skipif(not JOB.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")


def parsed():
    for file in sorted([*GPU.glob("*.py"), *GPU.glob("others/*.py")]):
        yield file.name, ast.parse(file.read_text())


def texts(tree):
    """Strings, with 0 for what is put into them."""
    inside = {id(v) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for v in n.values}
    for n in ast.walk(tree):
        if isinstance(n, ast.JoinedStr):
            yield n.lineno, "".join(v.value if isinstance(v, ast.Constant) else "0" for v in n.values)
        elif isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in inside:
            yield n.lineno, re.sub(r"\{\w+\}", "0", n.value)


def options(tree):
    """Words of `protonctl run` before the program, where all but names and files are said in the source."""
    for n in ast.walk(tree):
        words = [v.value if isinstance(v, ast.Constant) else None for v in n.elts] if isinstance(n, (ast.List, ast.Tuple)) else []
        if "run" not in words[:2] or "--" not in words or None in [w for w in words[2:words.index("--")] if w is not None and not isinstance(w, str)]:
            continue
        said = words[words.index("run") + 1:words.index("--")]
        for at, w in enumerate(said):
            if w is None:  # a name, a file, the words of a test
                said[at] = "x" if at > 0 and said[at - 1] in ("-n", "-k", "-s") else None
        if "-o" in said:
            del said[said.index("-o"):said.index("-o") + 2]
        yield n.lineno, tuple(w for w in said if w is not None)


def test_their_questions_have_answers(world):
    dump = world.home / "waits.cuptidump"
    subprocess.run([BUILD / "replay/gen", "waits", "13.0", dump], check=True, timeout=WAIT)
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "x", "--all", "-s", "sync,api", "-d", "both")
    assert play(world, dump).returncode == 0
    world.ctl("finalize", "x")
    until("it is stored", lambda: world.state("x") == "finalized")
    asked = [(name, line, text) for name, tree in parsed() for line, text in texts(tree) if re.match(r"select .* from ", text, re.S)]
    assert len(asked) > 40
    wrong = [(name, line, r.stderr) for name, line, text in asked for r in [world.view("sql", "x", text, "--json", check=False)] if r.returncode != 0]
    assert not wrong


def test_their_options_are_options(world):
    found = {words for _, tree in parsed() for _, words in options(tree)}
    assert len(found) > 8
    for words in found:
        words = [w if w != "x" or words[i - 1] == "-n" else {"-k": "none", "-s": "sync"}[words[i - 1]] for i, w in enumerate(words)]
        r = world.ctl("run", *words, "--", "true", check=False)
        assert r.returncode == 0 and "usage" not in r.stderr, (words, r.stderr)
