# SPDX-License-Identifier: MIT. alloc_check.py: memory that the driver gives: how much, whose, when the most; and what it costs to know.
"""alloc_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import json
import pathlib
import subprocess
import sys

from judge import check, judge
from torch_room import CTL, DIR, VIEW, costs, room, view

HERE = pathlib.Path(__file__).resolve().parent
WORK = str(HERE / "alloc_work.py")


def recorded(mode, *options, **more):
    """(rows of protonview memory as dicts, what the program says, environment)"""
    env = room(**more)
    env["PYTHONPATH"] = str(DIR / "lib/protond/python")
    out = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "said.json"
    r = subprocess.run([CTL, "run", "-n", "x", "-k", "none", *options, "--", sys.executable, WORK, mode, str(out)], env=env,
                       capture_output=True, text=True, timeout=280)
    check(f"{mode} {' '.join(options)}: it ran", r.returncode == 0 and out.exists(), r.stderr[-900:])
    got = subprocess.run([VIEW, "memory", "x", "--json"], env=env, capture_output=True, text=True, timeout=60)
    data = json.loads(got.stdout or "{}").get("data") or {}
    names = [c["name"] for c in data.get("columns", [])]
    for words in json.loads(got.stdout or "{}").get("warnings", []):
        print("   ", words)
    return [dict(zip(names, row)) for row in data.get("rows", [])], json.loads(out.read_text()), env


def accounts(rows):
    """{kind: its row}, of all devices together: there is one"""
    return {r["kind"]: r for r in rows if r["scope"] is None}


def owners(rows, kind):
    return {r["scope"]: r for r in rows if r["scope"] is not None and r["kind"] == kind}


def driver():
    """Counts, bytes, the peak and who held it, of every kind; threads' scopes are their own."""
    rows, said, env = recorded("driver", "-s", "alloc")
    got = accounts(rows)
    print("    kinds:", {k: (r["device"], r["allocs"], r["frees"]) for k, r in got.items()})
    for kind, want in said.items():
        mine, who = got.get(kind), owners(rows, kind)
        if not check(f"{kind}: it is there", mine is not None, str(sorted(got))):
            continue
        theirs = {w: r["live"] for w, r in who.items() if w.startswith("thread-") and r["live"]}
        for field in ("allocs", "allocated", "frees", "freed", "live", "peak"):
            extra = {"device": 2 << 20} if kind == "device" else {}  # torch's own first segment
            check(f"{kind}: {field}", mine[field] in (want[field], want[field] + extra.get("device", 0),
                                                      want[field] + (kind == "device")), f"{mine[field]}, {want[field]}")
        check(f"{kind}: who holds what at the end", theirs == {w: b for w, b in want["held"].items() if b}, f"{theirs}, {want['held']}")
        peak = {w: r["peak"] for w, r in who.items() if w.startswith("thread-") and r["peak"]}
        check(f"{kind}: who held the peak", peak == {w: b for w, b in want["at_peak"].items() if b}, f"{peak}, {want['at_peak']}")
        check(f"{kind}: nothing unknown", mine["unknown_frees"] + mine["freed_unseen"] + mine["untracked"] == 0, str(mine))
    if "reserved" in got:
        check("pools have at least what is taken of them", got["reserved"]["live"] >= got["pool"]["live"],
              f"{got['reserved']['live']}, {got['pool']['live']}")
    print(view(env, "memory", "x"))


def torch():
    """torch's segments are the driver's allocations, to the byte."""
    rows, stats, env = recorded("torch", "-s", "alloc")
    mine = accounts(rows).get("device", {})
    for field, theirs in (("allocs", "segment.all.allocated"), ("frees", "segment.all.freed"), ("allocated", "reserved_bytes.all.allocated"),
                          ("freed", "reserved_bytes.all.freed"), ("live", "reserved_bytes.all.current"), ("peak", "reserved_bytes.all.peak")):
        check(f"{field} is torch's {theirs}", mine.get(field) == stats[theirs], f"{mine.get(field)}, {stats[theirs]}")
    check("steps are known", mine.get("steps", 0) > 40, str(mine.get("steps")))
    print(view(env, "memory", "x"))


def nocache():
    """Without torch's cache each tensor is a cudaMalloc: 60 that grow, 60 that work; half of the first are freed."""
    rows, _, _ = recorded("torch", "-s", "alloc", PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    grow = owners(rows, "device").get("step/grow", {})
    mine = accounts(rows).get("device", {})
    check("as many as tensors", mine.get("allocs") in (120, 121), str(mine.get("allocs")))
    sizes, kept = [(3 << 20) + i * 4096 for i in range(60)], []
    for i in range(60):
        kept.append(sizes[i])
        if i % 20 == 19:
            del kept[::2]
    check("the program's end freed what it kept", grow.get("live") == 0 and grow.get("peak", 0) >= sum(kept), f"{grow}, {sum(kept)}")


def expandable():
    """Segments that grow are mapped (cuMemCreate, cuMemMap): what CUPTI says of that is only shown."""
    rows, stats, _ = recorded("expandable", "-s", "alloc")
    print("    CUPTI:", {k: (r["allocs"], r["live"], r["peak"]) for k, r in accounts(rows).items()})
    print("    torch:", stats["segment.all.allocated"], stats["reserved_bytes.all.current"], stats["reserved_bytes.all.peak"])


SAME = {  # of a row of protonview memory: torch's name of it
    "torch_allocated": (("allocs", "allocation.all.allocated"), ("frees", "allocation.all.freed"), ("blocks", "allocation.all.current"),
                        ("allocated", "allocated_bytes.all.allocated"), ("freed", "allocated_bytes.all.freed"),
                        ("live", "allocated_bytes.all.current"), ("peak", "allocated_bytes.all.peak")),
    "torch_reserved": (("live", "reserved_bytes.all.current"), ("peak", "reserved_bytes.all.peak"),
                       ("allocated", "reserved_bytes.all.allocated"), ("freed", "reserved_bytes.all.freed")),
    "torch_active": (("live", "active_bytes.all.current"), ("peak", "active_bytes.all.peak")),
    "torch_inactive_split": (("live", "inactive_split_bytes.all.current"),),
    "torch_requested": (("live", "requested_bytes.all.current"), ("peak", "requested_bytes.all.peak")),
}


def blocks(mode="blocks"):
    """Torch's allocator block by block: counts and bytes are those of its memory_stats(), and owners hold all of it."""
    rows, stats, env = recorded(mode, "-s", "alloc")
    got = accounts(rows)
    for kind, fields in SAME.items():
        for field, theirs in fields:
            mine = got.get(kind, {}).get(field)
            check(f"{mode}: {kind} {field} is torch's {theirs}", mine == stats.get(theirs, 0), f"{mine}, {stats.get(theirs)}")
    if mode == "blocks":
        check("segments", got.get("torch_reserved", {}).get("allocs") == stats["segment.all.allocated"],
              f"{got.get('torch_reserved', {}).get('allocs')}, {stats['segment.all.allocated']}")
    who, mine = owners(rows, "torch_allocated"), got.get("torch_allocated", {})
    check(f"{mode}: owners hold it all", sum(r["live"] for r in who.values()) == mine.get("live"), str({w: r["live"] for w, r in who.items()}))
    check(f"{mode}: and the peak", sum(r["peak"] for r in who.values()) == mine.get("peak"), str({w: r["peak"] for w, r in who.items()}))
    check(f"{mode}: nothing unknown", mine.get("unknown_frees", 1) + mine.get("freed_unseen", 1) == 0, str(mine))
    print(view(env, "memory", "x"))
    print(view(env, "tree", "x", "-m", "torch_allocs,torch_ooms"))


def blocks_expandable():
    blocks("blocks-expandable")


def snapshots():
    """No compiler: from torch's own history of it, which keeps 100 000 entries, read when the recording ends. Peaks are of what was read."""
    place = room()["PROTOND_RUNTIME_DIR"]
    rows, stats, env = recorded("blocks", "-s", "alloc", CXX="false", XDG_CACHE_HOME=place)
    got = accounts(rows)
    for kind, fields in SAME.items():
        for field, theirs in fields:
            mine = got.get(kind, {}).get(field)
            if field in ("allocs", "frees", "blocks", "live"):
                check(f"snapshots: {kind} {field} is torch's {theirs}", mine == stats.get(theirs, 0), f"{mine}, {stats.get(theirs)}")
            else:
                print(f"      {kind} {field}: {mine}, torch's {theirs}: {stats.get(theirs)}")
    who, mine = owners(rows, "torch_allocated"), got.get("torch_allocated", {}).get("live", 1)
    lines = sum(r["live"] for where, r in who.items() if "alloc_work.py:" in where)
    check("snapshots: lines of the program hold what autograd's thread, which has none, did not allocate", lines >= mine / 2
          and lines + who.get("", {"live": 0})["live"] == mine, f"{lines} of {mine}: { {where: r['live'] for where, r in who.items()} }")
    print(view(env, "memory", "x"))


def off():
    rows, _, env = recorded("torch")
    words = subprocess.run([VIEW, "memory", "x"], env=env, capture_output=True, text=True, timeout=60)
    check("off: none, and it says which switch", not rows and words.returncode != 0 and "-s alloc" in words.stderr, words.stderr[-300:])


def cost():
    costs("alloc", {"w1": 1.03, "w3": 1.03})


judge((driver, torch, nocache, expandable, blocks, blocks_expandable, snapshots, off, cost), sys.argv[2:])
