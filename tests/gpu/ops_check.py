# SPDX-License-Identifier: MIT. ops_check.py: operators of PyTorch against Kineto's of the same run, field by field; and what they cost.
"""ops_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed". A model whose library is not installed is
left out, and said to be."""
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys

from judge import check, judge
from ops_fields import compare
from torch_room import CTL, DIR, VIEW, costs, room, view

HERE = pathlib.Path(__file__).resolve().parent
ALL = {f"PROTOND_TORCH_{name}": 1 for name in ("SHAPES", "DTYPES", "STRIDES", "SCALARS", "KWARGS", "SEQUENCE")}
NEEDS = {"gpt2": "transformers", "resnet50": "torchvision"}
MODELS = ("gpt", "conv", "strange", "gpt2", "resnet50", "compiled")
AT_MOST = {"names": 1.10, "shapes and types": 1.35}


def place(**more):
    env = room(**more)
    env["PYTHONPATH"] = str(DIR / "lib/protond/python")
    return env, pathlib.Path(env["PROTOND_RUNTIME_DIR"])


def fields():
    for model in MODELS:
        if model in NEEDS and importlib.util.find_spec(NEEDS[model]) is None:
            print(f"      {model}: {NEEDS[model]} is not installed")
            continue
        env, folder = place(**ALL)
        r = subprocess.run([sys.executable, HERE / "ops_work.py", model, folder], env=env, capture_output=True, text=True, timeout=400)
        if not check(f"{model}: it ran", r.returncode == 0, r.stderr[-900:]):
            continue
        found = compare(folder)
        words = "; ".join([f"missing {len(found['missing'])} {found['missing'][:6]}", f"more {len(found['more'])} {found['more'][:6]}",
                           *(f"{key}: {len(rows)}, as {rows[0]}" for key, rows in found["differences"].items())])
        check(f"{model}: {found['ops']} operators, each field as Kineto has it",
              found["ops"] > 50 and not found["missing"] and not found["more"] and not found["differences"], words)


def gpu_time():
    """All that the GPU did stands below an operator, as often as it did without them."""
    env, folder = place(PROTOND_TORCH_SHAPES=1, PROTOND_TORCH_DTYPES=1, PROTOND_TORCH_FLOPS=1)
    r = subprocess.run([CTL, "run", "-n", "x", "-d", "both", "-s", "ops", "--", sys.executable, HERE / "torch_work.py", "w3", "--steps", "6"],
                       env=env, capture_output=True, text=True, timeout=280)
    check("W3 with operators: it ran", r.returncode == 0, r.stderr[-900:])
    rows = json.loads(view(env, "ops", "x", "--json") or "{}").get("data", {}).get("rows", [])
    check("protonview ops has rows", len(rows) > 20, f"{len(rows)}; {rows[:2]}")
    r = subprocess.run([VIEW, "ops", "x", "-n", "12"], env=dict(env, COLUMNS="110"), capture_output=True, text=True, timeout=60)
    print(r.stdout, r.stderr)


def switched():
    """Of a running program, without a word before: built meanwhile, and off again."""
    env, folder = place()
    env["XDG_CACHE_HOME"] = str(folder / "cache")
    program = subprocess.Popen([CTL, "run", "-n", "x", "--", sys.executable, "-c", LOOP, folder], env=env)
    try:
        for words, on in (("+ops", True), ("-ops", False)):
            wait_for(folder / "turns")
            subprocess.run([CTL, "set", "x", words], env=env, check=True, timeout=60)
            check(f"set {words}: operators are {'seen' if on else 'gone'} within 120 s", until(lambda on=on: grows(env) == on, 120))
    finally:
        (folder / "stop").touch()
        program.wait(timeout=60)
    made = list((folder / "cache/protond/ops").glob("*.so"))
    check("one build is kept", len(made) == 1 and made[0].stat().st_mode & 0o777 == 0o700, str(made))


LOOP = """
import pathlib, sys, time, torch
place = pathlib.Path(sys.argv[1])
x = torch.zeros(64, device="cuda")
end = time.monotonic() + 300
while not (place / "stop").exists() and time.monotonic() < end:
    for _ in range(100):
        x.add_(1)
    torch.cuda.synchronize()
    (place / "turns").touch()
"""


def wait_for(path):
    until(path.exists, 120)
    path.unlink()
    until(path.exists, 30)


def until(what, seconds):
    import time
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.3)  # the daemon commits meanwhile
    return False


def calls(env):
    rows = json.loads(view(env, "sql", "x", "select sum(calls) from nodes where name like 'aten::add_%'", "--json") or "{}")
    return (rows.get("data", {}).get("rows") or [[0]])[0][0] or 0


def grows(env):
    import time
    before = calls(env)
    time.sleep(1.5)  # some commits
    return calls(env) > before


def names():
    """Names alone, against the tree alone, and against a callback of torch's that does nothing: torch's own part."""
    env, _ = place()
    r = subprocess.run([CTL, "run", "-q", "-n", "x", "-b", "none", "--cpu", "off", "-k", "none", "--", sys.executable, HERE / "ops_turns.py"],
                       env=env, capture_output=True, text=True, timeout=300)
    if not check("names: the costs were measured", r.returncode == 0, r.stderr[-900:]):
        return
    took = json.loads(r.stdout.splitlines()[-1])
    for way, floor, most in (("ops", "off", AT_MOST["names"]), ("empty", "off", None), ("ops", "empty", None)):
        ratios = sorted(a / b for a, b in zip(took[way], took[floor]))
        middle = statistics.median(ratios)
        words = (f"{middle:.4f} x, middle half {ratios[len(ratios) // 4]:.4f} to {ratios[-len(ratios) // 4]:.4f}; "
                 f"the least {min(took[way]) / min(took[floor]):.4f} x; {statistics.median(took[floor]):.3f} and {statistics.median(took[way]):.3f} ms")
        if most:
            check(f"w3, names against {floor}: at most {most} x", middle <= most, words)
        else:
            print(f"      w3, {way} against {floor}: {words}")


def cost():
    for what, more in (("shapes and types", {"PROTOND_TORCH_SHAPES": 1, "PROTOND_TORCH_DTYPES": 1}),
                       ("all fields", {**ALL, "PROTOND_TORCH_FLOPS": 1})):
        costs("ops", {"w3": AT_MOST[what]} if what in AT_MOST else {}, what, **more)


os.environ.setdefault("COLUMNS", "110")
judge((fields, names, cost, gpu_time, switched), sys.argv[2:])
