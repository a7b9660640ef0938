# SPDX-License-Identifier: MIT. compare.py: the same training step under protond and under Triton's Proton.
"""compare.py DIR OUT: counts per path must be equal (PROTOND_INHERIT=copy), times within 3 % in total.

Two runs, for CUPTI has room for one subscriber: same program, seed and number of steps. OUT gets both
.hatchet files, and a third made with the default rule, in which each step's backward kernels stand under
that step.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DIR, OUT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
STEPS = "6"


def kernels(path):
    """{scopes: [count, ns]} and {scopes/kernel: count} of every kernel leaf; names of scopes only."""
    by_scope, by_kernel = {}, {}

    def walk(node, scopes):
        m = node["metrics"]
        if m.get("count") and not node["children"]:
            at = by_scope.setdefault("/".join(scopes[:-1]), [0, 0])
            at[0] += m["count"]
            at[1] += m["time (ns)"]
            by_kernel["/".join(scopes)] = by_kernel.get("/".join(scopes), 0) + m["count"]
        for c in node["children"]:
            walk(c, scopes + [c["frame"]["name"]])

    walk(json.loads(pathlib.Path(path).read_text())[0], [])
    return by_scope, by_kernel


def run(argv, **env):
    r = subprocess.run(argv, env=dict(os.environ, **env), cwd=OUT, capture_output=True, text=True, timeout=280)
    if r.returncode != 0:
        sys.exit(f"{argv}: exit {r.returncode}\n{r.stdout}{r.stderr[-2000:]}")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    room = tempfile.mkdtemp(prefix="pdcmp", dir="/dev/shm")
    env = {"PROTOND_RUNTIME_DIR": room, "PROTOND_DB": room + "/db", "PYTHONPATH": str(DIR / "lib/protond/python")}
    work = [sys.executable, str(HERE / "torch_work.py"), "w3", "--steps", STEPS]
    ctl = [str(DIR / "bin/protonctl"), "run"]
    run([*work, "--tool", "proton", "--out", "w3-proton"])
    run([*ctl, "--", *work, "--tool", "protond", "--out", "w3-protond-copy"], PROTOND_INHERIT="copy", **env)
    run([*ctl, "--", *work, "--tool", "protond", "--out", "w3-protond"], **env)
    theirs, their_kernels = kernels(OUT / "w3-proton.hatchet")
    ours, our_kernels = kernels(OUT / "w3-protond-copy.hatchet")
    follow, _ = kernels(OUT / "w3-protond.hatchet")
    bad = 0
    for k in sorted(set(theirs) | set(ours)):
        a, b = theirs.get(k, [0, 0]), ours.get(k, [0, 0])
        if a[0] != b[0]:
            bad += 1
            print(f"differs  {k}: Proton {a[0]}, protond {b[0]}")
    for k in sorted(set(their_kernels) ^ set(our_kernels))[:20]:
        print("only in", "Proton" if k in their_kernels else "protond", k[:160])
    ta, tb = sum(v[1] for v in theirs.values()), sum(v[1] for v in ours.values())
    print(f"{len(theirs)} scopes with kernels, {sum(v[0] for v in theirs.values())} kernels, {bad} scopes differ; "
          f"GPU time Proton {ta / 1e6:.3f} ms, protond {tb / 1e6:.3f} ms, {100 * (tb / ta - 1):+.2f} %")
    for parity in ("even", "odd"):
        f = sum(v[0] for k, v in follow.items() if k.startswith(parity + "/backward"))
        c = sum(v[0] for k, v in ours.items() if k.startswith(parity + "/backward"))
        print(f"backward kernels under {parity}: {f} by the default rule, {c} by PROTOND_INHERIT=copy")
    even, odd = (sum(v[0] for k, v in follow.items() if k.startswith(p + "/backward")) for p in ("even", "odd"))
    ok = bad == 0 and abs(tb / ta - 1) < 0.03 and even == odd > 0
    print("ok" if ok else "FAIL")
    return 0 if ok else 1


sys.exit(main())
