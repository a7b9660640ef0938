# SPDX-License-Identifier: MIT. ops_fields.py: operators of one run as torch.profiler and as a session of ours has them, field by field.
"""compare(folder): what ops_work.py left there -> {"ops": n, "missing": [...], "more": [...], "differences": {key: [...]}}"""
import json
import pathlib

# Numbers of Kineto's own.
THEIRS = {"External id", "Ev Idx", "Trace name", "Trace iteration", "Profiler Event Index"}
# Ours, of which Kineto has none at this level.
OURS = {"External id", "bytes", "kwinputs", "Call stack", "Record scope", "began_before", "open", "unwound", "metrics"}


def events(path):
    text = json.loads(pathlib.Path(path).read_text())
    return text, [e for e in text["traceEvents"] if e.get("ph") == "X" and e.get("cat") == "cpu_op"]


def inside(some, whole):
    """Those of the steps that both saw."""
    window = next(e for e in whole["traceEvents"] if e.get("name") == "both look" and e.get("ph") == "X" and e.get("cat") == "user_annotation")
    begin, end = window["ts"], window["ts"] + window["dur"]
    return sorted((e for e in some if begin <= e["ts"] < end), key=lambda e: (e["ts"], -e["dur"]))


def old(args):
    """As torch 1.13 has it: of lists neither dimensions nor a type."""
    dims = [[] if any(isinstance(x, list) for x in one) else one for one in args.get("Input Dims", [])]
    types = ["" if t == "ScalarList" else t for t in args.get("Input type", [])]
    return {**args, **({"Input Dims": dims, "Input type": types} if dims else {})}


def pairs(theirs, ours, is_old):
    if is_old:  # no ids, and one thread: the order is that of their beginning
        return list(zip(theirs, ours)), [e["name"] for e in theirs[len(ours):]], [e["name"] for e in ours[len(theirs):]]
    by_id = {e["args"]["Record function id"]: e for e in ours}
    both = [(e, by_id.pop(e["args"].get("Record function id"), None)) for e in theirs]
    return [p for p in both if p[1]], [e["name"] for e, o in both if o is None], [e["name"] for e in by_id.values()]


def compare(folder, form="kineto"):
    folder = pathlib.Path(folder)
    their_file, theirs = events(folder / "kineto.json")
    our_file, ours = events(next(folder.glob(f"ours*{form}")))
    is_old = their_file.get("old", False)
    both, missing, more = pairs(theirs if is_old else inside(theirs, their_file), inside(ours, our_file), is_old)
    differences = {}
    for t, o in both:
        a = {k: v for k, v in t["args"].items() if k not in THEIRS}
        b = {k: v for k, v in (old(o["args"]) if is_old else o["args"]).items() if k not in OURS and not k.startswith("flops")}
        if is_old:
            b = {k: v for k, v in b.items() if k not in ("Concrete Inputs", "Input Strides", "Record function id")}
        if t["name"] != o["name"]:
            differences.setdefault("name", []).append([t["name"], o["name"]])
        for key in sorted({*a, *b}):
            if a.get(key) != b.get(key):
                differences.setdefault(key, []).append([t["name"], a.get(key), b.get(key)])
    return {"ops": len(both), "missing": missing, "more": more, "differences": differences}


if __name__ == "__main__":
    import sys
    for one in sys.argv[1:]:
        found = compare(one)
        print(one, found["ops"], "operators;", "missing:", len(found["missing"]), found["missing"][:5], "more:", len(found["more"]), found["more"][:5])
        for key, rows in found["differences"].items():
            print("  ", key, len(rows), *rows[:5], sep="\n      ")
