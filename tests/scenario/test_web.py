# SPDX-License-Identifier: MIT. `protonview web`: who may ask, what is answered, and that nobody can take it down.
import contextlib
import gzip
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
from urllib.parse import quote

import pytest

from conftest import BUILD, SANITIZED, WAIT, readable, until
from test_exports import GOLDEN, replayed
from test_hostile_names import JOB, NAMES
from test_replay import DUMPS, JOB as REPLAY

KERNELS, FRAMES = GOLDEN / "three_kernels.hatchet", GOLDEN / "frames.hatchet"
replays = pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")


class Page:
    """A server, and a browser that has its cookie."""

    def __init__(self, world, *args, port=0, env=None):
        where = [] if any(a == "--bind" for a in args) and "unix:" in " ".join(map(str, args)) else ["--port", str(port)]
        self.world, self.err = world, world.home / "web.err"
        self.process = subprocess.Popen([str(BUILD / "bin/protonview"), "web", "--no-open", *where, *map(str, args)],
                                        env={**world.env, **(env or {})}, cwd=world.home, stdout=subprocess.PIPE, stderr=open(self.err, "w"), text=True)
        ready = readable(self.process.stdout)
        self.url = self.process.stdout.readline().strip()
        assert ready and self.url, self.err.read_text()
        self.token = self.url.split("token=")[1]
        self.cookie = None
        if self.url.startswith("http"):
            self.host, self.port = re.fullmatch(r"http://(\[?[^/]*?\]?):(\d+)/\?token=\w{32}", self.url).groups()
            self.cookie = self.ask("/?token=" + self.token, cookie=False)[1]["Set-Cookie"].split(";")[0]

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=WAIT)

    def ask(self, path, method="GET", cookie=True, connection=None, **headers):
        """(status, headers, bytes)"""
        c = connection or self.connect()
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        c.request(method, path, headers={**({"Cookie": self.cookie} if cookie else {}), **headers})
        r = c.getresponse()
        body = r.read()
        if connection is None:
            c.close()
        return r.status, r.headers, body

    def json(self, path):
        status, headers, body = self.ask("/api/" + path)
        assert status == 200, body
        assert headers["Content-Type"] == "application/json"
        return json.loads(body)

    def words(self, path, status, **kwargs):
        """Of what was refused."""
        got, _, body = self.ask(path, **kwargs)
        envelope = json.loads(body)
        assert got == status and set(envelope) == {"protond", "kind", "error", "warnings"}, (got, body)
        return envelope["error"]["text"]

    def rss_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def end(self, sig=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(sig)
        self.process.stdout.close()
        return self.process.wait(WAIT)


@pytest.fixture
def serve(world):
    pages = []

    def start(*args, **kwargs):
        pages.append(Page(world, *args, **kwargs))
        return pages[-1]

    yield start
    for p in pages:
        assert p.end() in (0, -9), p.err.read_text()
        said = p.err.read_text()
        assert "Sanitizer" not in said and "runtime error: " not in said, said


# --- who may ask

def test_the_token_is_traded_for_a_cookie(serve):
    page = serve(KERNELS)
    status, headers, body = page.ask("/?token=" + page.token, cookie=False)
    assert (status, headers["Location"], body) == (303, "./", b"")
    name, *flags = headers["Set-Cookie"].split("; ")
    assert re.fullmatch(rf"protond-{page.port}=\w{{32}}", name) and set(flags) == {"HttpOnly", "SameSite=Strict"}
    assert page.token not in name, "who sees the cookie does not know the token"
    assert "token" in page.words("/api/sessions", 401, cookie=False)
    assert "token" in page.words("/api/sessions", 401, cookie=False, Cookie=f"protond-{page.port}={'0' * 32}")
    assert "`protonview web` printed" in page.words("/?token=" + "0" * 32, 403, cookie=False)
    assert "`protonview web` printed" in page.words("/?token=", 403, cookie=False)
    assert page.ask("/api/sessions")[0] == 200


def test_another_name_and_another_page_are_refused(serve):
    page = serve(KERNELS, "--allow-host", "hub.example,Node-7")
    for host in ("evil.example", f"evil.example:{page.port}", "127.0.0.1.evil.example", "localhost:80:80", "localhost:8o", "", "[::1"):
        assert "--allow-host" in page.words("/api/sessions", 421, Host=host), host
        page.words("/?token=" + page.token, 421, cookie=False, Host=host)
    for host in ("localhost", f"localhost:{page.port}", "LOCALHOST:1", "127.0.0.1", "[::1]:9", "hub.example", "node-7:443"):
        assert page.ask("/api/sessions", Host=host)[0] == 200, host
    for origin in ("http://evil.example", "null", "https://localhost.evil.example", "file://", "http://hub.example.evil"):
        assert "another site" in page.words("/api/sessions", 403, Origin=origin), origin
    assert page.ask("/api/sessions", Origin="https://hub.example")[0] == 200
    for site in ("cross-site", "same-site"):
        page.words("/api/sessions", 403, Sec_Fetch_Site=site)
        page.words("/app.js", 403, Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="script")
    # A link from elsewhere leads to the page, which has nothing of anybody's.
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert page.ask("/", cookie=False, **link)[0] == 200
    assert page.ask("/?token=" + page.token, cookie=False, **link)[0] == 303
    page.words("/api/sessions", 403, **link)


def test_what_every_answer_says_to_a_browser(serve):
    page = serve(KERNELS)
    for path, cookie in (("/", True), ("/app.js", True), ("/app.css", True), ("/api/sessions", True), ("/api/sessions", False), ("/nothing", True)):
        _, headers, _ = page.ask(path, cookie=cookie)
        policy = dict(d.strip().split(" ", 1) for d in headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["style-src"] == "'self'"
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in headers
    index = page.ask("/")[2].decode()
    assert not re.search(r"""(src|href)=["'](https?:|/)""", index), "all of it comes from here, by relative addresses"


def test_bytes_are_saved(serve):
    page = serve(KERNELS)
    for path in ("/app.js", "/api/s/f1/tree"):
        status, plain, body = page.ask(path)
        assert status == 200 and "Content-Encoding" not in plain
        status, packed, small = page.ask(path, Accept_Encoding="br, gzip")
        assert packed["Content-Encoding"] == "gzip" or len(body) < 1400
        assert (gzip.decompress(small) if "Content-Encoding" in packed else small) == body
        status, again, nothing = page.ask(path, If_None_Match=plain["ETag"])
        assert (status, nothing, again["ETag"]) == (304, b"", plain["ETag"])
        assert page.ask(path, If_None_Match='"another"')[0] == 200
        status, headers, nothing = page.ask(path, method="HEAD")
        assert status == 200 and nothing == b"" and int(headers["Content-Length"]) == len(body)


# --- where it listens

def test_a_taken_port_moves_on(world, serve):
    first = serve(KERNELS, port=0)
    r = world.view("web", "--no-open", "--port", first.port, check=False)
    assert r.returncode == 1 and first.port in r.stderr and "in use" in r.stderr
    taken = socket.create_server(("127.0.0.1", 8051)) if not listens(8051) else None
    p = subprocess.Popen([str(BUILD / "bin/protonview"), "web", "--no-open", str(KERNELS)], env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = re.search(r":(\d+)/", p.stdout.readline())[1]
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=WAIT)
    assert p.returncode == 0 and int(port) > 8051 and f"port 8051 is taken, so it is {port}" in err
    assert f"ssh -L {port}:127.0.0.1:{port}" in err, "there is no display"
    if taken:
        taken.close()


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_a_unix_socket(world, serve):
    page = serve("--bind", f"unix:{world.home}/web.sock", KERNELS)
    path = world.home / "web.sock"
    assert path.stat().st_mode & 0o777 == 0o700 and page.url.startswith(f"unix:{path}?token=")

    def ask(line, *headers):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(WAIT)
            s.connect(str(path))
            s.sendall("\r\n".join([f"GET {line} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]).encode())
            got = b""
            while more := s.recv(65536):
                got += more
        return got
    cookie = re.search(rb"Set-Cookie: ([^;]*)", ask("/?token=" + page.token))[1].decode()
    assert ask("/api/sessions").startswith(b"HTTP/1.1 401")
    assert ask("/api/sessions", "Cookie: " + cookie).startswith(b"HTTP/1.1 200")
    r = world.view("web", "--bind", f"unix:{path}", KERNELS, check=False)
    assert r.returncode == 1 and "is there already" in r.stderr
    assert page.end() == 0 and not path.exists()


@pytest.mark.parametrize("args, words", [
    (["--bind", "example.org"], "is no address"), (["--bind", "unix:"], "unix:PATH"), (["--port", "65536"], "65535"), (["--port", "x"], "not a number"),
    (["--allow-host", ",".join(f"h{i}" for i in range(40))], "--allow-host"), (["--bind", "203.0.113.1"], "203.0.113.1"), (["-"], "standard input"), (["nobody"], "nothing has been recorded"),
    (["/nonexistent/x.hatchet"], "no such file")])
def test_what_cannot_be_started(world, args, words):
    r = world.view("web", "--no-open", *args, check=False)
    assert r.returncode in (1, 2) and words in r.stderr, r.stderr


def test_it_answers_soon_after_it_was_started(world, serve):
    import time
    begin = time.monotonic()
    page = serve(KERNELS)
    page.json("s/f1/meta")
    assert time.monotonic() - begin < 2, "100 ms where the machine has nothing else to do"


# --- what is answered

def inclusive(tree, name):
    """(depths to parents) and the metric of each node with all below it."""
    metric = next(m for m in tree["metrics"] if m["name"] == name)
    total, stack, parent = list(tree["values"][metric["self"]]), [], []
    for i, depth in enumerate(tree["node"]["depth"]):
        del stack[depth:]
        parent.append(stack[-1] if stack else -1)
        stack.append(i)
    for i in range(len(total) - 1, 0, -1):
        total[parent[i]] += total[i]
    return total


@replays
@pytest.mark.parametrize("gz", [d for d in DUMPS if d.name.split(".")[0] in ("torch", "copies", "graph")], ids=lambda p: p.name.split(".")[0])
def test_the_page_says_what_the_tools_say(world, serve, gz):
    replayed(world, gz)
    page = serve("r")
    (ref,) = page.json("sessions")["open"]
    tool = json.loads(world.view("tree", "r", "--json", "-m", "gpu_time/ns,gpu_count", "-d", 1000, "-n", 0).stdout)
    tool = tool["data"] if "data" in tool else tool
    tree = page.json(f"s/{ref}/tree")
    columns = [c["name"] for c in tool["columns"]]
    want = [(row[columns.index("name")], row[columns.index("depth")], row[-2] or 0, row[-1] or 0) for row in tool["rows"]]
    raw = [tree["recorded"].get(str(n), tree["names"][n]) for n in tree["node"]["name"]]
    got = list(zip(raw, tree["node"]["depth"], inclusive(tree, "gpu_time"), inclusive(tree, "count")))
    assert sorted(got) == sorted(want) and got[0] == want[0] and len(got) > 1
    flat = json.loads(world.view("flat", "r", "--json", "-n", 0).stdout)
    flat = flat["data"] if "data" in flat else flat
    ops, names = page.json(f"s/{ref}/ops"), [c["name"] for c in flat["columns"]]
    for tool_column, column in (("sum", "total"), ("count", "count"), ("p50", "p50"), ("p99", "p99"), ("max", "max")):
        at = next(i for i, n in enumerate(names) if n.startswith(tool_column))
        scale = {"ms": 1e6, "us": 1e3, "ns": 1, "": 1}[flat["columns"][at]["unit"]]
        assert ops["column"][column] == pytest.approx([row[at] * scale for row in flat["rows"]], rel=1e-6), column
    for bars, count in zip(ops["column"]["hist"], ops["column"]["count"]):
        assert len(bars[0]) == len(bars[1]) + 1 <= 25 and sum(bars[1]) == count and bars[0] == sorted(bars[0])
    meta = page.json(f"s/{ref}/meta")
    assert meta["session"]["name"] == "r" and meta["has"]["timeline"] and meta["has"]["gpu"] and not meta["live"]
    assert meta["summary"]["compute_ns"] + meta["summary"]["comm_ns"] + meta["summary"]["copy_ns"] == inclusive(tree, "gpu_time")[0]


def test_steps_are_those_of_sql(world, serve):
    world.start()
    world.ctl("run", "-n", "demo", "-k", "none", "-d", "both", "--", BUILD / "bin/protond-demo")
    page = serve("demo")
    (ref,) = page.json("sessions")["open"]
    steps = page.json(f"s/{ref}/steps")["column"]
    sql = json.loads(world.view("sql", "demo", "select step, begin_ns, dur_ns from steps order by step", "--json").stdout)
    rows = (sql["data"] if "data" in sql else sql)["rows"]
    assert [[s, d] for s, d in zip(steps["step"], steps["duration"])] == [[r[0], r[2]] for r in rows] and len(rows) == 24
    assert [b - steps["start"][0] for b in steps["start"]] == [r[1] - rows[0][1] for r in rows]
    assert all(b <= d for b, d in zip(steps["gpu_busy"], steps["duration"]))
    meta = page.json(f"s/{ref}/meta")
    assert meta["steps"] == 24 and {lack["what"] for lack in meta["lacks"]} == {"gpu", "ranks"} and meta["lost"] == 0


def test_a_launch_and_its_record_are_lost_once(world, serve):
    world.start()
    world.ctl("run", "-n", "demo", "-k", "none", "-d", "both", "--", BUILD / "bin/protond-demo")
    world.stop()
    with contextlib.closing(sqlite3.connect(world.db)) as db, db:
        for cause, count in ((1, 2), (4, 5), (11, 7)):
            db.execute("INSERT INTO loss(session, process, cause, count) SELECT session, process, ?, ? FROM member", (cause, count))
    page = serve("demo")
    (ref,) = page.json("sessions")["open"]
    meta = page.json(f"s/{ref}/meta")
    assert sum(d["count"] for d in meta["session"]["drops"]) == 14 and meta["lost"] == 2 + 7
    assert re.search(r"drops 9\b", world.view("tree", "demo").stdout), "as over a tree"


def tile(body):
    """[(start, dur, name, id, count, lane, depth)], ns a pixel, flags."""
    magic, _, n, n_names, t0, per, flags, name_bytes = struct.unpack_from("<4s3I2d2I", body)
    assert magic == b"PTL1" and len(body) == 40 + 28 * n + name_bytes <= 256 << 10
    at, columns = 40, []
    for code in "dfIIIHH":
        columns.append(struct.unpack_from(f"<{n}{code}", body, at))
        at += n * struct.calcsize(code)
    names = []
    for _ in range(n_names):
        (length,) = struct.unpack_from("<I", body, at)
        names.append(body[at + 4:at + 4 + length].decode())
        at += 4 + length
    assert at == len(body)
    return [(s, d, names[k], *rest) for s, d, k, *rest in zip(*columns)], per, flags



def test_a_stack_of_another_profiler_has_a_row_for_each_line(world, serve):
    """What a thread of torch.profiler was in stands one below the other: nothing covers what it is in."""
    world.view("import", pathlib.Path(__file__).parents[1] / "real/kineto.json.gz", "--as", "gpt2")
    page = serve(world.home / "kineto.protond")
    lanes = page.json("s/f1/lanes")
    main = lanes["lane"][0]
    depth = max(page.json("s/f1/tree")["node"]["depth"])
    assert main["kind"] == "thread" and 20 < main["rows"] <= depth, main
    begin = lanes["t0"] + (lanes["t1"] - lanes["t0"]) // 2
    rows = {}
    for start, dur, name, _, count, _, row in tile(page.ask(f"/api/s/f1/window?t0={begin}&t1={begin + 200_000}&px=8000&lanes=0")[2])[0]:
        rows.setdefault(row, []).append((start, start + dur, name))
    assert len(rows) > 5
    for row in rows.values():
        row.sort()
        assert all(a[1] <= b[0] + 1 for a, b in zip(row, row[1:])), row

@replays
def test_a_timeline_by_window(world, serve):
    """Its slices, sums, arrows and events are what `sql` has."""
    replayed(world, next(d for d in DUMPS if d.name.startswith("torch")))
    page = serve("r")
    (ref,) = page.json("sessions")["open"]
    ask = lambda sql: json.loads(world.view("sql", "r", sql, "--json").stdout)
    rows = lambda sql: (lambda e: e["data"] if "data" in e else e)(ask(sql))["rows"]
    zero = min(r[0] for r in rows("select min(begin_ns) from scopes union all select min(start_ns) from kernels union all select min(start_ns) from copies"))
    lanes = page.json(f"s/{ref}/lanes")
    streams = [lane["id"] for lane in lanes["lane"] if lane["kind"] == "stream"]
    assert sum(lane["events"] for lane in lanes["lane"] if lane["kind"] == "stream") == rows("select (select count(*) from kernels) + (select count(*) from copies)")[0][0]
    first, last = rows("select min(start_ns), max(end_ns) from (select start_ns, end_ns from kernels union all select start_ns, end_ns from copies)")[0]
    t0, t1 = first - zero, last - zero
    where = ",".join(map(str, streams))
    body = page.ask(f"/api/s/{ref}/window?t0={t0}&t1={t1 + 1}&px=1000&lanes={where}")
    slices, per, flags = tile(body[2])
    assert body[1]["Content-Type"] == "application/octet-stream" and per == (t1 + 1 - t0) / 1000
    assert sum(s[4] for s in slices) == sum(lanes["lane"][i]["events"] for i in streams) and {s[5] for s in slices} <= set(streams)
    # A part of it so small that nothing is merged: each slice is an event.
    some = rows("select start_ns, end_ns, name, grid_x, registers from kernels order by start_ns limit 12")[6:]
    begin, end = some[0][0] - zero, some[-1][0] - zero
    slices, per, _ = tile(page.ask(f"/api/s/{ref}/window?t0={begin}&t1={end}&px=16000&lanes={where}")[2])
    kernels = sorted(s for s in slices if not s[2].startswith("[") and s[0] >= begin)
    assert per < min(r[1] - r[0] for r in some), "it is this fine"
    assert [(s[0], s[2], s[4]) for s in kernels] == [(r[0] - zero, r[2], 1) for r in some[:-1]]
    one = page.json(f"s/{ref}/event?id={kernels[3][3]}")
    assert (one["name"], one["start_ns"], one["dur_ns"], one["registers"]) == (some[3][2], some[3][0] - zero, some[3][1] - some[3][0], some[3][4])
    assert one["grid"].startswith(f"{some[3][3]} ×") and one["path"][0] == "ROOT" and one["path"][-1] == one["name"]
    sums = page.json(f"s/{ref}/sums?t0={t0}&t1={t1 + 1}&lanes={where}")
    want = rows("select sum(n), sum(t) from (select count(*) n, sum(dur_ns) t from kernels union all select count(*), sum(dur_ns) from copies)")[0]
    assert [sum(sums["count"]) + sums["rest"]["count"], sum(sums["total"]) + sums["rest"]["total"]] == want
    found = page.json(f"s/{ref}/find?from={t0}&dir=next&name=" + quote(some[5][2]))
    assert found["found"] and found["name"] == some[5][2]
    assert not page.json(f"s/{ref}/find?name=nothing+of+this+name&from=0")["found"]
    arrows = page.json(f"s/{ref}/arrows?t0={begin}&t1={end}&px=16000")
    launched = rows(f"select launch_ns, start_ns from kernels where launch_ns is not null and start_ns >= {begin + zero} and start_ns < {end + zero}")
    assert set(zip(arrows["from"], arrows["to"])) >= {(a - zero, b - zero) for a, b in launched} and len(launched) > 2
    assert len(page.json(f"s/{ref}/arrows")["from"]) <= 4000
    for bad in ("window?t0=9&t1=3", "window?px=0", "window?px=99999", "window?t0=x", "window?lanes=1-", "window?lanes=9-3", "window?lanes=99999999", "window?t0=-1",
                "sums?lanes=,", "counters?px=0", "counters?counters=x", "event?id=x", "find?from=0", "find?name=x&from=-1", "arrows?t1=0"):
        page.words(f"/api/s/{ref}/{bad}", 400)
    page.words(f"/api/s/{ref}/event?id=0", 404)


def test_numbers_over_time(world, serve):
    world.start()
    world.ctl("run", "-n", "demo", "-k", "none", "-d", "both", "--", BUILD / "bin/protond-demo")
    page = serve("demo")
    (ref,) = page.json("sessions")["open"]
    sql = json.loads(world.view("sql", "demo", "select name, count(*), min(value), max(value) from scope_values group by 1", "--json").stdout)
    rows = (sql["data"] if "data" in sql else sql)["rows"]
    series = page.json(f"s/{ref}/series")["series"]
    assert rows and {(s["name"], s["told"], min(s["v"]), max(s["v"])) for s in series} == {(r[0].split(" (")[0], r[1], r[2], r[3]) for r in rows}
    assert all(s["t"] == sorted(s["t"]) and len(s["t"]) == len(s["v"]) <= 4000 for s in series)
    # The same in the timeline, by pixel: all of them, one of them, and nothing behind the end but the last number.
    counters = page.json(f"s/{ref}/counters?px=1000")
    assert {(c["name"], c["told"], c["least"], c["most"]) for c in counters["counter"]} == {(s["name"], s["told"], min(s["v"]), max(s["v"])) for s in series}
    for c in counters["counter"]:
        assert (sum(c["count"]), min(c["min"]), max(c["max"])) == (c["told"], c["least"], c["most"]) and c["px"] == sorted(set(c["px"]))
        assert not counters["coarse"] and counters["left_out"] == 0 and c["before"] is None and max(c["px"]) < counters["px"] == 1000
        (alone,) = page.json(f"s/{ref}/counters?px=1000&counters={c['id']}")["counter"]
        assert alone == c
        (later,) = (x for x in page.json(f"s/{ref}/counters?t0={10**12}&t1={2 * 10**12}&px=9")["counter"] if x["id"] == c["id"])
        assert later["px"] == [] and later["before"] == c["last"][-1]


def test_bottlenecks(world, serve):
    """The page says what the tool says, of a file of a tree too."""
    world.start()
    world.ctl("run", "-n", "demo", "-b", "none", "-d", "both", "--", BUILD / "bin/protond-demo")
    page = serve("demo", KERNELS)
    for ref, name in zip(page.json("sessions")["open"], ("demo", KERNELS)):
        said = json.loads(world.view("bottlenecks", name, "--json").stdout)["data"]
        rows = [dict(zip([c["name"] for c in said["columns"]], row)) for row in said["rows"]]
        got = page.json(f"s/{ref}/bottlenecks")
        assert [(v["rule"], v["severity"], v["words"]) for v in got["verdicts"]] == [(r["rule"], r["severity"], r["words"]) for r in rows if r["state"] == "found"]
        assert {r["rule"]: r["state"] for r in got["rules"]} == {r["rule"]: r["state"] for r in rows}
        assert all(r["lacks"] and len(r["lacks"]) == len(r["record"]) for r in got["rules"] if r["state"] == "lacks")
        for v in got["verdicts"]:  # where it is seen lies in the timeline, and what is marked lies in that
            lanes = page.json(f"s/{ref}/lanes") if v["time"] else None
            assert not lanes or lanes["t0"] <= v["time"][0] < v["time"][1]
            assert not v["mark"] or v["time"][0] <= v["mark"][0] < v["mark"][1] <= v["time"][1]
            assert name == "demo" or v["time"] is None, "a tree has no time"


def test_ranks(world, serve):
    world.start()
    demo = BUILD / "bin/protond-demo"
    world.ctl("run", "-n", "two", "-k", "none", "-d", "both", "--", "sh", "-c", f"RANK=0 {demo} & RANK=1 {demo}; wait")
    page = serve("two", "two")
    ref, again = page.json("sessions")["open"]
    assert ref == again
    ranks = page.json(f"s/{ref}/ranks")
    each = [json.loads(world.view("tree", "two", "--process", r, "--json", "-m", "cpu_time/ns", "-d", 1000).stdout) for r in (0, 1)]
    assert [p["rank"] for p in ranks["processes"]] == [0, 1] and ranks["metric"] == "cpu_time"
    for i, e in enumerate(each):
        e = e["data"] if "data" in e else e
        names = [c["name"] for c in e["columns"]]
        own = {row[names.index("name")]: row[-1] for row in e["rows"] if row[names.index("depth")] == 1}
        for path, values in zip(ranks["column"]["path"], ranks["values"]):
            if len(path) == 1:
                assert values[i] == own[ranks["names"][path[0]]]
    for values, low, high in zip(ranks["values"], ranks["column"]["min"], ranks["column"]["max"]):
        assert (min(values), max(values)) == (low, high)
    steps = page.json(f"s/{ref}/steps")
    assert set(steps["column"]["process"]) == {0, 1} and {p["rank"] for p in steps["processes"]} == {0, 1}
    assert page.json(f"s/{ref}/tree?process=1")["names"]


def test_two_sides_of_a_difference(serve):
    page = serve(KERNELS, GOLDEN / "slower.hatchet")
    d = page.json("diff?a=f1&b=f2")
    assert set(d["node"]["side"]) <= {1, 2, 3}
    for name, after in d["after"].items():
        before = d["before"].get(name, [None] * len(after))
        assert d["change"].get(name, [0] * len(after)) == pytest.approx([(a or 0) - (b or 0) for a, b in zip(after, before)])
    assert "takes a=ID" in page.words("/api/diff?a=f1", 400)


def test_files_are_those_of_export(world, serve):
    world.start()
    world.ctl("run", "-n", "a/../b;c\"", "-k", "none", "-d", "both", "--", BUILD / "bin/protond-demo")
    page = serve("@last", KERNELS)
    (ref, _) = page.json("sessions")["open"]
    for ending in ("csv", "folded", "hatchet", "pftrace", "svg", "kernels.json", "protond"):
        status, headers, body = page.ask(f"/api/s/{ref}/export.{ending}")
        world.view("export", "@last", "-o", f"x.{ending}")
        assert status == 200 and body == (world.home / f"x.{ending}").read_bytes() or ending == "protond" and body[:15] == b"SQLite format 3"
        assert headers["Content-Disposition"] == f'attachment; filename="a____b_c_.{ending}"'
        assert page.ask(f"/api/s/{ref}/export.{ending}", method="HEAD")[1]["Content-Length"] == str(len(body))
    for path in (f"s/{ref}/export", f"s/{ref}/export.", f"s/{ref}/export.exe", f"s/{ref}/export.../../x.csv", "s/f2/export.pftrace", f"s/{ref}/export.{'a' * 900}"):
        page.words("/api/" + path, 404)


@pytest.mark.preload
def test_hostile_names(world, serve):
    world.start()
    world.ctl("run", "-n", "n", "-k", "none", "-d", "both", "--", sys.executable, "-c", JOB, BUILD / "lib/libprotond.so.0")
    page = serve("n")
    (ref,) = page.json("sessions")["open"]
    tree = page.json(f"s/{ref}/tree")
    assert len(tree["node"]["name"]) == 1 + len(NAMES)
    page.json(f"s/{ref}/ops"), page.json(f"s/{ref}/steps"), page.json(f"s/{ref}/meta")


def test_what_is_not_there(world, serve):
    page = serve(KERNELS)
    for path in ("nothing", "api", "api/", "api/s/f1", "api/s/f1/", "api/s/f1/nothing", "api/s//meta", "api/tree", "api/s/f1/sessions", "../etc/passwd",
                 "%2e%2e/%2e%2e/etc/passwd", "app.js/", "index.html/../app.js", "api/s/..%2f..%2fetc%2fpasswd/meta", "api/s/f2/meta", "api/s/@last/meta",
                 f"api/s/{str(KERNELS).replace('/', '%2f')}/meta", "api/s/-1/meta", "api/s/99999999999999999999/meta"):
        page.words("/" + path, 404)
    for path in ("api/s/f1/meta?a=%", "api/s/f1/meta?a=%zz", "api/s/f1/meta%00", "api/s/f1/meta?" + "&".join(f"a{i}=1" for i in range(40)),
                 "api/s/f1/tree?phase=x", "api/s/f1/meta?x=" + "a" * 5000):
        page.words("/" + path, 400)
    assert "no timeline" in page.words("/api/s/f1/steps", 404)
    (world.home / "12").write_text("not ours")
    assert "nothing has been recorded" in page.words("/api/s/12/meta", 404), "a file that is called so is no session"


def test_files_that_are_not_ours(world, serve):
    for name, text in (("x.hatchet", b"{"), ("y.hatchet", b""), ("z.protond", b"SQLite format 3\0" + b"\0" * 4000)):
        (world.home / name).write_bytes(text)
        r = world.view("web", "--no-open", world.home / name, check=False)
        assert r.returncode == 1 and name in r.stderr
    source = world.home / "k.hatchet"
    source.write_bytes(KERNELS.read_bytes())
    page = serve(source, FRAMES)
    page.json("s/f2/tree")
    source.write_bytes(b"[[[")
    assert "k.hatchet" in page.words("/api/s/f1/tree", 500)
    assert page.json("s/f2/tree")["names"]
    source.unlink()
    assert "k.hatchet" in page.words("/api/s/f1/tree", 404)


@replays
@pytest.mark.long
def test_damaged_sessions(world, serve):
    """Bytes turned over anywhere: an answer or words, and the next question is answered."""
    replayed(world, next(d for d in DUMPS if d.name.startswith("eager")))
    world.view("export", "r", "-o", "whole.protond")
    whole, rng, seen = (world.home / "whole.protond").read_bytes(), random.Random(3), set()
    for flips in (0, 1, 1, 1, 2, 3, 5, 8, 20, 60):
        damaged = bytearray(whole)
        for _ in range(flips):
            damaged[rng.randrange(100, len(whole))] = rng.randrange(256)
        (world.home / "damaged.protond").write_bytes(damaged)
        try:
            page = serve(world.home / "damaged.protond")
        except AssertionError:
            continue  # it cannot be opened, and that was said at the start
        for path in ("meta", "tree", "ops", "steps", "series", "memory", "lanes", "window?px=500", "counters", "sums", "arrows", "find?name=kernel&from=0", "event?id=5", "export.csv"):
            status, headers, body = page.ask("/api/s/f1/" + path)
            assert status in (200, 404, 500, 503), body
            seen.add(status)
            if headers["Content-Type"] == "application/json":
                json.loads(body)
    assert 200 in seen


# --- who means harm

def test_methods_and_bodies(serve):
    page = serve(KERNELS)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        assert "GET" in page.words("/api/sessions", 405, method=method)
    assert "no body" in page.words("/api/sessions", 413, Content_Length="5")
    with socket.create_connection(("127.0.0.1", int(page.port)), timeout=WAIT) as s:
        s.sendall(f"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nCookie: {page.cookie}\r\nContent-Length: {1 << 30}\r\n\r\n".encode())
        sent, block = 0, b"x" * (1 << 20)
        try:
            while sent < 1 << 30:
                s.sendall(block)
                sent += len(block)
        except OSError:
            pass
        assert sent < 1 << 27, "it does not read on"
    assert page.rss_mib() < 64
    assert page.json("sessions")["open"] == ["f1"]


@pytest.mark.parametrize("bytes_", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"GET\r\n\r\n", b"\0" * 4000, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 9000,
                                    b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                                    b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n"], ids=range(8))
def test_bytes_that_are_no_request(serve, bytes_):
    page = serve(KERNELS)
    with socket.create_connection(("127.0.0.1", int(page.port)), timeout=WAIT) as s:
        got = b""
        try:
            s.sendall(bytes_)
            s.shutdown(socket.SHUT_WR)
            while more := s.recv(65536):
                got += more
        except OSError:
            pass
    assert got == b"" or got.startswith(b"HTTP/1.1 4") or b"<div id=" in got or b"200 OK" in got
    assert page.json("sessions")["open"] == ["f1"]


@pytest.mark.long
def test_a_thousand_connections(serve):
    page = serve(KERNELS)
    idle = [socket.create_connection(("127.0.0.1", int(page.port)), timeout=WAIT) for _ in range(1000)]
    for s in idle[::2]:
        s.sendall(b"GET / HTTP/1.1\r\n")  # and no more of it
    assert page.json("sessions")["open"] == ["f1"]
    assert page.rss_mib() < 64
    until("it lets go of who asks nothing", lambda: all(readable(s, 0) for s in (idle[0], idle[1], idle[-1], idle[-2])))
    for s in idle:
        s.close()


@pytest.mark.long
def test_slow_readers_hold_up_nobody(world, serve):
    """What is held for them has a ceiling of 64 MiB; beyond it they are told to come again."""
    kernels = [{"frame": {"name": f"kernel number {i} {os.urandom(200).hex()}", "type": "function"}, "metrics": {"count": 1, "time (ns)": i}, "children": []}
               for i in range(22000)]  # more than a socket's own buffer takes
    (world.home / "many.hatchet").write_text(json.dumps([{"frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0, "time (ns)": 0}, "children": kernels}, {}]))
    page = serve(world.home / "many.hatchet", KERNELS)
    assert len(page.ask("/api/s/f1/tree")[2]) > 8 << 20
    before, slow, status = page.rss_mib(), [], set()

    def ask(path):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(WAIT)
        s.connect(("127.0.0.1", int(page.port)))
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {page.cookie}\r\n\r\n".encode())
        slow.append(s)
        return s
    for s in [ask("/api/s/f1/tree") for _ in range(40)]:
        assert s.recv(4096).split()[1] == b"200", "the same answer is made once"
    assert page.rss_mib() < before + 64
    assert page.json("s/f2/tree")["names"], "nobody else waits for them"
    for i in range(20):
        status.add(ask(f"/api/s/f1/tree?{i}").recv(4096).split()[1])
        if b"503" in status:
            break
    assert status == {b"200", b"503"}
    assert SANITIZED or page.rss_mib() < before + 64 + 64  # a sanitizer keeps what was freed
    assert "again" in page.words("/api/s/f2/meta", 503)
    assert page.ask("/")[0] == 200
    for s in slow:
        s.close()
    until("there is room again", lambda: page.ask("/api/s/f2/tree")[0] == 200)


def test_many_questions_at_once(serve):
    page = serve(KERNELS, FRAMES)
    connections = [page.connect() for _ in range(100)]
    for i, c in enumerate(connections):
        c.request("GET", f"/api/s/f{1 + i % 2}/{('tree', 'ops', 'meta')[i % 3]}", headers={"Cookie": page.cookie})
    status = [c.getresponse().status for c in connections]
    assert set(status) <= {200, 503} and status.count(200) >= 60
    for c in connections:
        c.close()


def test_a_connection_is_used_again(serve):
    page = serve(KERNELS)
    c = page.connect()
    for _ in range(5):
        assert page.ask("/api/s/f1/tree", connection=c)[0] == 200
        assert page.ask("/app.css", connection=c)[0] == 200
    c.close()


def test_it_ends_at_once(serve):
    page = serve(KERNELS)
    c = page.connect()
    c.request("GET", "/api/s/f1/tree", headers={"Cookie": page.cookie})
    assert page.end(signal.SIGTERM) == 0
    c.close()


# --- what goes on

class Stream:
    """The events of api/live."""

    def __init__(self, page, ref):
        self.socket = socket.create_connection(("127.0.0.1", int(page.port)), timeout=WAIT)
        self.socket.sendall(f"GET /api/live?session={ref} HTTP/1.1\r\nHost: localhost\r\nCookie: {page.cookie}\r\n\r\n".encode())
        self.response = http.client.HTTPResponse(self.socket)
        self.response.begin()
        self.status, self.headers = self.response.status, self.response.headers

    def event(self):
        """(event, data) of the next one; None at the end."""
        event, data = "message", None
        while line := self.response.readline().decode().rstrip("\n"):
            key, _, value = line.partition(":")
            if key == "event":
                event = value.strip()
            if key == "data":
                data = json.loads(value)
        if data is None and not self.response.closed and line == "" and self.response.fp is None:
            return None
        return event, data

    def frame(self, test, what):
        """The first frame that is so."""
        for _ in range(200):
            got = self.event()
            assert got is not None, what
            if got[1] is not None and test(*got):
                return got[1]
        raise AssertionError(what)

    def close(self):
        self.response.close()
        self.socket.close()


def live(world, serve):
    """A job of 100 steps whose session goes on, its page, and the session's name there."""
    world.start()
    job = world.job()
    job.say("start live")
    job.say("repeat 100 step")
    until("it is stored", lambda: world.state("live"))
    page = serve("live")
    (ref,) = page.json("sessions")["open"]
    return job, page, ref


def test_a_live_session(world, serve):
    job, page, ref = live(world, serve)
    assert page.json(f"s/{ref}/meta")["live"]
    stream, other = Stream(page, ref), Stream(page, ref)
    assert stream.headers["Content-Type"] == "text/event-stream" and stream.headers["Cache-Control"] == "no-cache"
    first = stream.frame(lambda e, f: "steps" in f, "a frame")
    assert first["state"] == "active" and first["steps"] == 100 and first["step_rate"] is None and first["away"] is None and first["drops"] == 0
    job.say("repeat 50 step")
    more = stream.frame(lambda e, f: f.get("steps") == 150 and f["top"], "what was done since")
    assert more["step_rate"] > 0 and [(t["name"], t["count"]) for t in more["top"]] == [("step", 50)]
    assert other.frame(lambda e, f: f.get("steps") == 150, "both see it")
    job.say("finalize live")
    assert stream.frame(lambda e, f: f.get("state") == "finalized", "it is over")["steps"] == 150
    assert stream.frame(lambda e, f: e == "end", "and said so") == {}
    stream.close(), other.close()


def test_a_daemon_that_dies_under_a_live_view(world, serve):
    job, page, ref = live(world, serve)
    stream = Stream(page, ref)
    stream.frame(lambda e, f: f.get("steps") == 100, "a frame")
    world.stop(signal.SIGKILL)
    away = stream.frame(lambda e, f: f["away"], "it is said")
    assert "protond" in away["away"]
    assert page.json(f"s/{ref}/tree")["warnings"], "what was stored is still shown, and said to be that"
    world.start()
    job.say("repeat 7 step")
    stream.frame(lambda e, f: f.get("steps") == 107 and f["away"] is None, "it comes back")
    stream.close()


def test_streams_have_a_ceiling(world, serve):
    _, page, ref = live(world, serve)
    streams = [Stream(page, ref) for _ in range(16)]
    assert {s.status for s in streams} == {200}
    assert "close one" in page.words(f"/api/live?session={ref}", 503)
    for s in streams:
        s.close()
    until("there is room again", lambda: Stream(page, ref).status == 200)
    assert "session=ID" in page.words("/api/live", 400)
    nobody = until("there is room for another", lambda: next((s for s in [Stream(page, "nobody")] if s.status == 200), None))
    assert nobody.frame(lambda e, f: f["away"], "said")["away"].startswith("there is no session")
    page.words(f"/api/live?session={ref}", 401, cookie=False)
