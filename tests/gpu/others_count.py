# SPDX-License-Identifier: MIT. others_count.py: what count.c counted against what protond says, by name.
import json
import pathlib
import struct

COPIES = {1: "[memcpy HtoD]", 2: "[memcpy DtoH]", 3: "[memcpy HtoD]", 4: "[memcpy DtoH]", 5: "[memcpy DtoD]", 6: "[memcpy DtoD]",
          7: "[memcpy DtoD]", 8: "[memcpy DtoD]", 10: "[memcpy PtoP]"}
CUT = 1024 - 17  # proto/abi/ring.h: of a longer name the end is a hash
WITHIN = 0.005  # of a name's GPU time


def key(name):
    b = name.encode("utf-8", "surrogateescape")
    return b[:CUT].decode("utf-8", "ignore") + "~" if len(b) > 1024 or len(b) == 1024 and b[CUT:CUT + 1] == b"~" else name


def counted(folder):
    """({name: [count, ns]}, {all: …}) of all processes that count.c wrote of into a folder."""
    found, total = {}, {"records": 0, "untimed": 0, "processes": 0}
    for names in sorted(pathlib.Path(folder).glob("*.names")):
        slots = names.with_suffix(".count").read_bytes()
        lines = names.read_text(errors="surrogateescape").split("\n")[:-1]
        for i, line in enumerate(lines):
            count, ns, _, untimed = struct.unpack_from("<4Q", slots, i * 32)
            kind, _, name = line.partition("\t")
            if kind == "all":
                total = {"records": total["records"] + count, "untimed": total["untimed"] + untimed, "processes": total["processes"] + 1}
            elif count:
                name = {"1": lambda: COPIES.get(int(name), "[memcpy]"), "2": lambda: "[memset]",
                        "22": lambda: "[memcpy PtoP]"}.get(kind, lambda: key(name))()
                was = found.setdefault(name, [0, 0])
                was[0] += count
                was[1] += ns
    return found, total


def told(tree):
    """{name: [count, ns]} of all GPU work in a .hatchet file, wherever it stands."""
    found = {}

    def walk(node):
        for c in node["children"]:
            m = c["metrics"]
            for count, ns in (("count", "time (ns)"), ("copies", "copy_time (ns)")):
                if m.get(count):
                    was = found.setdefault(key(c["frame"]["name"]), [0, 0])
                    was[0] += m[count]
                    was[1] += m.get(ns, 0)
            walk(c)
    walk(json.loads(pathlib.Path(tree).read_text(errors="surrogateescape"))[0])
    return found


def other_counts(a, b):
    """{name: (a's count, b's)} where they differ."""
    return {n: (a.get(n, [0])[0], b.get(n, [0])[0]) for n in sorted(set(a) | set(b)) if a.get(n, [0])[0] != b.get(n, [0])[0]}


def worst_time(a, b):
    """(the largest difference of a name's time, as a share of a's; that name)"""
    return max(((abs(b.get(n, [0, 0])[1] - ns) / ns if ns else 0.0, n) for n, (_, ns) in a.items()), default=(0.0, ""))


def short(name):
    """A kernel's name as protonview has it: without what it returns, its parameters and unnamed namespaces."""
    name = name.removeprefix("void ").replace("(anonymous namespace)::", "").replace("> >", ">>").replace("> >", ">>")
    if name.endswith(")"):
        depth = 0
        for i in range(len(name) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(name[i], 0)
            if depth == 0:
                return name[:i]
    return name
