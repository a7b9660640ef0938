# SPDX-License-Identifier: MIT. What both tools print fits the line, and only names and columns pay for it.
import contextlib
import gzip
import json
import os
import pathlib
import pty
import re
import sqlite3
import subprocess
import unicodedata

import pytest

from conftest import BUILD, WAIT, until
from test_view import chain

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
KERNELS, THREE, SLOWER, TRITON = (GOLDEN / f"{n}.hatchet" for n in ("kernels", "three_kernels", "slower", "triton"))
DEMO = BUILD / "bin/protond-demo"
WHOLE = "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}"


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def widest(text):
    return max(text.splitlines(), key=columns)


def numbers(text):
    return re.findall(r"\d+\.\d+", text)


def views(world):
    deep = chain(world.home / "deep.hatchet", 60)
    return [["tree", KERNELS], ["tree", deep], ["tree", THREE, "-m", "util,byte/s,flops8"], ["demo"], ["demo", "-s", "value"],
            ["flat", KERNELS], ["flat", "--wide", "demo"], ["sessions"], ["bottlenecks", "demo", "--all"], ["bottlenecks", KERNELS],
            ["diff", SLOWER, TRITON], ["diff", KERNELS, KERNELS]]


@pytest.mark.parametrize("width", [80, 120])
def test_tables_of_protonview_fit(world, width):
    world.ctl("run", "-q", "-n", "demo", "--", DEMO)
    for args in views(world):
        narrow = world.view(*args, env={"COLUMNS": str(width)}).stdout
        assert columns(widest(narrow)) <= width, (args, widest(narrow))
        if args[0] not in ("flat", "sessions"):  # they leave columns out
            assert numbers(narrow) == numbers(world.view(*args).stdout), "a number was cut"
    narrow = world.view("tree", chain(world.home / "deep.hatchet", 60), env={"COLUMNS": str(width)}).stdout
    assert "…" in narrow and narrow.rstrip().endswith("leaf")


def test_tables_of_timelines_fit(world):
    """Where numbers find no room, whole columns leave, and a line says which."""
    for name, verbs in (("fault-none", "tree steps streams breakdown launches critical"), ("ranks-ddp", "steps streams ranks")):
        path = world.home / f"{name}.protond"
        path.write_bytes(gzip.decompress((GOLDEN.parent / f"recorded/{name}.protond.gz").read_bytes()))
        for verb in verbs.split():
            whole, *narrow = (world.view(verb, path, env={"COLUMNS": w}).stdout for w in ("", "80", "60"))
            assert columns(widest(narrow[0])) <= 80 and columns(widest(narrow[1])) <= 60, (verb, narrow)
            assert "not in this width" not in whole
            if name == "fault-none" and verb in ("steps", "streams", "launches"):
                assert "not in this width: " in narrow[1], narrow[1]


def test_where_a_late_rank_has_more_fits(world):
    """The scope on a line of its own is cut in the middle."""
    path = world.home / "slow.protond"
    path.write_bytes(gzip.decompress((GOLDEN.parent / "recorded/ranks-slow_rank.protond.gz").read_bytes()))
    for width in (60, 72, 80, 100):
        shown = world.view("ranks", path, env={"COLUMNS": str(width)}).stdout
        assert columns(widest(shown)) <= width and "::spin_kernel\n" in shown, (width, widest(shown))
    assert "/h.1/extra/at::cuda::spin_kernel\n" in world.view("ranks", path).stdout, "whole in a pipe"


def test_names_give_way_last(world):
    """Where no column may leave any more, names are cut further: forty columns are enough for a job's command."""
    world.start()
    world.job("bash", "-c", 'exec -a a_command_of_many_words_that_does_not_fit "$0"')
    until("it is attached", lambda: world.ctl_json("jobs")["jobs"])
    assert world.ctl("jobs").stdout.endswith("  -\n"), "it is in no session"
    narrow = world.ctl("jobs", env={"COLUMNS": "40"}).stdout
    assert columns(widest(narrow)) <= 40 and "…" in narrow, narrow


def test_colours_are_seen_on_white(world):
    hot = world.view("tree", KERNELS, "--color", "always").stdout
    assert "\x1b[1;35m" in hot and not re.search(r"\x1b\[(1;)?33m", hot)


def test_what_flat_leaves_out_is_said(world):
    narrow = world.view("flat", KERNELS, env={"COLUMNS": "80"}).stdout
    assert "not in this width: " in narrow and "class" in narrow.split("not in this width: ")[1]
    wide = world.view("flat", KERNELS).stdout
    assert "not in this width" not in wide and "class" in wide.splitlines()[0]
    assert world.view("flat", KERNELS, "--full-names", env={"COLUMNS": "80"}).stdout == world.view("flat", KERNELS, "--full-names").stdout


def test_nothing_is_cut_in_a_pipe(world):
    assert WHOLE in world.view("tree", KERNELS).stdout and WHOLE in world.view("flat", KERNELS).stdout
    assert WHOLE not in world.view("tree", KERNELS, env={"COLUMNS": "80"}).stdout
    for none in ("", "0", "wide", "-5"):
        assert WHOLE in world.view("tree", KERNELS, env={"COLUMNS": none}).stdout


def test_tables_of_protonctl_fit(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    until("known", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == job.pid])
    world.ctl("start", "a_session_of_a_rather_long_name", "--pid", job.pid)
    job.say("enter a scope with a long name, long enough that it does not stand on a line of eighty columns")
    job.say("repeat 3 " + "x" * 200)
    for args in (["jobs"], ["jobs", "--all"], ["status"], ["backends"], ["top", "--once"], ["sessions"], ["where"], ["doctor"]):
        narrow = world.ctl(*args, env={"COLUMNS": "80"}, check=args != ["doctor"]).stdout
        words = [line for line in narrow.splitlines() if "/" not in line]  # a path of a file is never cut
        assert columns(max(words, key=columns)) <= 80, (args, widest(narrow))
    assert "x" * 200 in world.ctl("top", "--once").stdout
    job.say("enter " + "y" * 200)
    assert columns(widest(world.ctl("where", env={"COLUMNS": "80"}).stdout)) <= 80 and "y" * 200 in world.ctl("where").stdout


def terminal(world, *args, **env):
    """What a program prints to a terminal of 80 columns."""
    main, side = pty.openpty()
    subprocess.run(["stty", "cols", "80", "rows", "40"], stdin=side, check=True, timeout=WAIT)
    r = subprocess.Popen([BUILD / "bin" / args[0], *map(str, args[1:])], stdin=side, stdout=side, stderr=side,
                         env={**world.env, "TERM": "xterm", **env})
    os.close(side)
    got = b""
    while True:
        try:
            more = os.read(main, 65536)
        except OSError:
            more = b""
        if not more:
            break
        got += more
    os.close(main)
    r.wait(WAIT)
    return got.decode().replace("\r\n", "\n")


def test_on_a_terminal(world):
    shown = terminal(world, "protonview", "tree", KERNELS)
    assert columns(widest(re.sub("\033\\[[0-9;]*m", "", shown))) <= 80
    assert "\033[" in shown and "\033[1;31m" not in shown, "a hot frame is nothing wrong"
    assert "\033[" not in terminal(world, "protonview", "tree", KERNELS, NO_COLOR="1")
    assert "\033[" not in terminal(world, "protonview", "tree", KERNELS, "--color", "never")
    assert WHOLE in terminal(world, "protonview", "tree", KERNELS, COLUMNS="1000")


def test_color_is_honoured(world):
    for tool, args in (("protonview", ["tree", KERNELS]), ("protonview", ["flat", KERNELS])):
        assert "\033[" in world.tool(tool, *args, "--color", "always", env={"NO_COLOR": "1"}).stdout
        assert "\033[" not in world.tool(tool, *args).stdout
        assert world.tool(tool, *args, "--color", "sometimes", check=False).returncode == 2
    world.start()
    job = world.job()
    until("known", lambda: world.ctl_json("jobs")["jobs"])
    assert "\033[1m" in world.ctl("jobs", "--color=always", env={"NO_COLOR": "1"}).stdout
    assert "\033[" not in world.ctl("jobs").stdout and job.quit() == 0
    assert world.ctl("jobs", "--color", "red", check=False).returncode == 2


def test_losses_are_red(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    job.say("start s")
    job.say("repeat 3 a")
    world.ctl("finalize", "s")
    assert "\033[1;31m" not in world.view("tree", "s", "--color", "always").stdout
    world.stop()
    with contextlib.closing(sqlite3.connect(world.db)) as db, db:
        db.execute("INSERT INTO loss(session, process, cause, count) SELECT session, process, 1, 5 FROM member")
    lossy = world.view("tree", "s", "--color", "always").stdout
    assert "\033[1;31mdrops 5\033[0m" in lossy and "\033[1;31mdropped 5: " in lossy


def test_flops_and_bytes_have_units(world):
    shown = world.view(THREE, "-m", "flops8,flop8/s,tflop8/s,bytes,byte/s,bytes/%").stdout.splitlines()
    assert re.split("  +", shown[1].strip()) == ["210 GFLOP", "342 TFLOP/s", "341.797", "120 MB", "195 GB/s", "100.000", "ROOT"]
    assert [line.index(name) for line, name in zip(shown[1:], ("ROOT", "├─ foo", "├─ foo", "└─ foo"))] == [shown[1].index("ROOT")] * 4
    shown = world.view("diff", THREE, THREE, "-m", "bytes,flop8/s").stdout
    assert "bytes  120 MB -> 120 MB  +0 B  +0.0%\n" in shown and "+0 FLOP/s" in shown
    data = json.loads(world.view(THREE, "-m", "flops8", "--json").stdout)["data"]
    assert data["rows"][0][-1] == 210000000000, "exact"
    small = world.home / "small.hatchet"
    small.write_text(json.dumps([{"frame": {"name": "ROOT"}, "metrics": {"flops": 0, "bytes": 0}, "children": [
        {"frame": {"name": f"n{i}"}, "metrics": {"flops": v, "bytes": -v}, "children": []}
        for i, v in enumerate((1, 999, 999.6, 1000, 12345, 999600, 1.2e12, 1e30))]}, {}]))
    cells = [re.split("  +", line.strip())[:2] for line in world.view(small, "-m", "flops,bytes").stdout.splitlines()[2:]]
    assert cells == [["1 FLOP", "-1 B"], ["999 FLOP", "-999 B"], ["1.00 kFLOP", "-1.00 kB"], ["1.00 kFLOP", "-1.00 kB"],
                     ["12.3 kFLOP", "-12.3 kB"], ["1.00 MFLOP", "-1.00 MB"], ["1.20 TFLOP", "-1.20 TB"],
                     ["1000000000000 EFLOP", "-1000000000000 EB"]]


def scopes(path):
    """ROOT / (small 1 ms, group without a time / (big 50, mid 20), big 30 / small 4)."""
    def node(name, ms, *children):
        return {"frame": {"name": name}, "metrics": {"cpu_time (ns)": ms * 10 ** 6, "calls": 2} if ms else {}, "children": children}
    path.write_text(json.dumps([{"frame": {"name": "ROOT"}, "metrics": {}, "children": [
        node("small", 1), node("group", 0, node("mid", 20), node("big", 50)), node("big", 30, node("small", 4))]}, {}]))
    return path


def last(text):
    return [line.split()[-1] for line in text.splitlines()]


def test_cost_order(world):
    path = scopes(world.home / "x.hatchet")
    assert last(world.view(path).stdout)[1:] == ["ROOT", "small", "group", "mid", "big", "big", "small"], "as first seen"
    assert last(world.view(path, "-s", "value").stdout)[1:] == ["ROOT", "group", "big", "mid", "big", "small", "small"]


def test_flat_is_sorted_by_any_number(world):
    path = scopes(world.home / "x.hatchet")

    def names(*args):
        return [name for name in last(world.view("flat", path, *args).stdout)[1:] if name in ("big", "mid", "small")]
    assert names() == names("-s", "sum") == ["big", "mid", "small"]
    assert names("-s", "count") == ["big", "small", "mid"] and names("-s", "name") == ["big", "mid", "small"]
    head, big, *_ = (line.split() for line in world.view("flat", path).stdout.splitlines())
    assert big[head.index("self/ms")] == "76.000" and big[head.index("sum/ms")] == "80.000"
    r = world.view("flat", path, "-s", "size", check=False)
    assert r.returncode == 2 and "sum self count avg min p50 p99 max name" in r.stderr
    data = json.loads(world.view("flat", path, "-s", "self", "--json").stdout)["data"]
    at = [c["name"] for c in data["columns"]].index("self")
    assert [row[at] for row in data["rows"]] == [76e6, 20e6, 5e6]


def test_help_fits(world):
    for tool in ("protonctl", "protonview"):
        listed = [line.split("\t")[0] for line in world.tool(tool, "__complete", "--", "").stdout.splitlines()]
        for words in [[]] + [[verb] for verb in listed if verb.isalpha()] + [["options"]] * (tool == "protonctl"):
            r = world.tool(tool, "help", *words, check=False)
            lines = [line for line in r.stdout.splitlines() if "PROTOND_DB=" not in line]
            assert r.returncode == 0 and columns(max(lines, key=columns)) <= 80, (words, max(lines, key=columns))
    r = world.tool("protond", "--help")
    assert "retention_mb_per_uid" in r.stdout and columns(max(r.stdout.splitlines(), key=columns)) <= 80
