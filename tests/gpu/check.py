# SPDX-License-Identifier: MIT. check.py: what the profiler says against what the programs counted, on a GPU.
"""check.py DIR: DIR is a build or a bundle with bin/protonctl and gpu/work. Ends in "N passed, M failed".

Each run is `protonctl run -o FILE.hatchet -- work MODE` in a private runtime directory of its own; the
file is read as Proton's (tree of frames with "count" and "time (ns)").
"""
import concurrent.futures
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

from judge import check, judge

DIR = pathlib.Path(sys.argv[1]).resolve()
KEEP = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
CTL, WORK = str(DIR / "bin/protonctl"), str(DIR / "gpu/work")


def values(text):
    return {k: float(v) for k, v in re.findall(r"^([\w/]+)=([\d.]+)$", text, re.M)}


def flat(node, path=(), out=None):
    """{path: (count, ns)} of every frame."""
    out = {} if out is None else out
    for c in node["children"]:
        p = path + (c["frame"]["name"],)
        m = c["metrics"]
        if m.get("count"):
            n, ns = out.get(p, (0, 0))
            out[p] = (n + m["count"], ns + m.get("time (ns)", 0))
        flat(c, p, out)
    return out


def copied(node, path=(), out=None):
    """{path: copies} of every copy and set."""
    out = {} if out is None else out
    for c in node["children"]:
        p = path + (c["frame"]["name"],)
        if c["metrics"].get("copies"):
            out[p] = out.get(p, 0) + c["metrics"]["copies"]
        copied(c, p, out)
    return out


class Room:
    """A private daemon's runtime directory and database."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pdgpu", dir="/dev/shm"))
        self.dir.chmod(0o700)

    def env(self, **more):
        e = dict(os.environ, PROTOND_RUNTIME_DIR=str(self.dir), PROTOND_DB=str(self.dir / "db"))
        e.update({k: str(v) for k, v in more.items()})
        return e


def run(name, *argv, room=None, **env):
    """(the job's values, flattened tree, words of protonctl)"""
    room = room or Room()
    out = room.dir / f"{name}.hatchet"
    r = subprocess.run([CTL, "run", "-n", name, "-o", str(out), "--", WORK, *map(str, argv)],
                       env=room.env(**env), capture_output=True, text=True, timeout=500)
    if r.returncode != 0 or not out.exists():
        check(name, False, f"exit {r.returncode}: {r.stderr[-400:]}")
        return None, {}, r.stderr
    if KEEP:
        (KEEP / out.name).write_bytes(out.read_bytes())
    tree = json.loads(out.read_text())[0]
    return {**values(r.stdout), "copies": copied(tree)}, flat(tree), r.stderr


def total(tree, kernel=None):
    leaves = [(p, v) for p, v in tree.items() if kernel is None or any(kernel in x for x in p[-1:])]
    return sum(v[0] for _, v in leaves), sum(v[1] for _, v in leaves)


def lost_in(words):
    """The counts of loss that the head line or a session's losses say."""
    m = re.search(r"(\d[\d,]*) (?:launches )?unmatched", words)
    return int(m.group(1).replace(",", "")) if m else 0


def many():
    for threads in (1, 8):
        v, t, words = run(f"many{threads}", "many", threads, 1000000)
        if v is None:
            continue
        n = total(t, "empty_kernel")[0]
        check(f"1 M launches on {threads} threads, none lost", n == v["launched"] == 1000000,
              f"{n:.0f} of {v['launched']:.0f}, {v['ns_per_launch']:.0f} ns each"
              + "".join("; " + x for x in words.splitlines() if x.startswith("dropped")))


def eager():
    v, t, _ = run("eager", "eager")
    if v is None:
        return
    for layer in ("embed", "mlp", "head"):
        for kernel in ("add_kernel", "relu_kernel"):
            n = sum(c for p, (c, _) in t.items() if p[-2:-1] == (layer,) and kernel in p[-1])
            check(f"eager {layer}/{kernel}", n == 40, f"{n}")
    check("eager total", total(t)[0] == v["launched"], f"{total(t)[0]} of {v['launched']:.0f}")


def graph():
    v, t, _ = run("graph", "graph", 10)
    if v is None:
        return
    for parity in ("odd", "even"):
        for layer in ("layer0", "layer1"):
            n = sum(c for p, (c, _) in t.items()
                    if p[0] == parity and "<captured_at>" in p and layer in p and "add_kernel" in p[-1])
            check(f"graph {parity}/<captured_at>/{layer}", n == 5, f"{n}")
    n = sum(c for p, (c, _) in t.items() if p[0] == "alone")
    check("launch beside a graph", n == 1, f"{n}")
    n = sum(c for p, (c, _) in t.items() if "kernel" in p[-1] and p[0] in ("odd", "even"))
    check("graph kernels: replays x nodes", n == 50, f"{n}")


def copies():
    v, t, _ = run("copies", "copies")
    if v is None:
        return
    for kind in ("[memcpy HtoD]", "[memcpy DtoH]", "[memcpy DtoD]", "[memset]"):
        n = sum(c for p, c in v["copies"].items() if p[0] == "io" and p[-1] == kind)
        check(f"copies: {kind}", n == 11, f"{n}")


def timed():
    v, t, _ = run("timed", "timed", 50)
    if v is None:
        return
    ns = sum(x for p, (_, x) in t.items() if p[0] == "timed" and "spin" in p[-1])
    check("kernels of 3 ms agree with CUDA events", abs(ns / v["events_ns_0"] - 1) < 0.02,
          f"{ns / 1e6:.3f} ms, events {v['events_ns_0'] / 1e6:.3f} ms")


def forced_loss():
    """Eight threads, each with a buffer of CUPTI's, and a pool of two: what is missing is said to be missing."""
    v, t, words = run("loss", "many", 8, 400000, PROTOND_CUPTI_BUFFERS=2)
    if v is None:
        return
    n = total(t)[0]
    check("forced loss: stored + lost = launched", 0 < lost_in(words) == v["launched"] - n,
          f"{n} stored, {lost_in(words)} said lost, {v['launched']:.0f} launched")


def killed():
    """SIGKILL under load: the tree holds what the page says, but for the last flush period."""
    room = Room()
    page = room.dir / "page"
    p = subprocess.Popen([CTL, "run", "-n", "killed", "-o", str(room.dir / "killed.hatchet"), "--", WORK,
                          "grow", "1000000", "100"], env=room.env(WORK_PAGE=page, ),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdout.readline()
    job = int(subprocess.run(["pgrep", "-P", str(p.pid), "-x", "work"], capture_output=True, text=True).stdout.split()[0])
    os.kill(job, signal.SIGKILL)
    _, words = p.communicate(timeout=120)
    out = room.dir / "killed.hatchet"
    check("killed: exit status", p.returncode == 128 + signal.SIGKILL, f"{p.returncode}")
    t = flat(json.loads(out.read_text())[0]) if out.exists() else {}
    # What finished within the last flush period before the kill has no record, and is said to have none.
    n = total(t)[0]
    check("killed: stored + said lost = what the job had counted", 1000000 <= n + lost_in(words) and n > 900000,
          f"{n} stored, {lost_in(words)} said lost, the page says 1000000 and the next ones were on their way")


def kills(n=24):
    """SIGKILL at random instants: rounds of 1 000 launches, counted in the job's page when their GPU work is done."""
    def one(seed):
        room, rng = Room(), random.Random(seed)
        page = room.dir / "page"
        p = subprocess.Popen([CTL, "run", "-n", "k", "-o", str(room.dir / "k.hatchet"), "--", WORK, "grow", "1000", "1000000"],
                             env=room.env(WORK_PAGE=page), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        p.stdout.readline()
        job = int(subprocess.run(["pgrep", "-P", str(p.pid), "-x", "work"], capture_output=True, text=True).stdout.split()[0])
        time.sleep(rng.uniform(0, 1.5))  # the instant is what is tried
        os.kill(job, signal.SIGKILL)
        _, words = p.communicate(timeout=120)
        counted = struct.unpack("<Q", page.read_bytes()[:8])[0]
        stored = total(flat(json.loads((room.dir / "k.hatchet").read_text())[0]))[0]
        return counted, stored, lost_in(words)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one, range(n)))
    wrong = [x for x in found if not 0 <= x[1] + x[2] - x[0] <= 1000]
    check(f"killed at {n} random instants: stored + said lost is what was launched", not wrong,
          f"{sum(x[0] for x in found)} counted, {sum(x[2] for x in found)} said lost; (counted, stored, lost): {wrong[:5]}")


def hung():
    """A kernel that spins: `where` names it while the job lives."""
    room = Room()
    p = subprocess.Popen([CTL, "run", "-n", "hung", "--", WORK, "hang", "45"], env=room.env(PROTOND_STALL_MS=3000),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdout.readline()
    deadline, text = time.monotonic() + 40, ""
    while time.monotonic() < deadline and "spin_kernel" not in text:
        jobs = subprocess.run([CTL, "jobs", "--json"], env=room.env(), capture_output=True, text=True).stdout
        pids = re.findall(r'"pid": ?(\d+)', jobs)
        for pid in pids:
            text += subprocess.run([CTL, "where", pid], env=room.env(), capture_output=True, text=True).stdout
        time.sleep(0.5)
    check("where names the spinning kernel", "spin_kernel" in text, text[-300:])
    p.communicate(timeout=200)


judge((eager, graph, copies, timed, many, forced_loss, killed, kills, hung), ())
