# SPDX-License-Identifier: MIT. The switch counters, on a running program, with what its kernel counts; and words where it does not.
import subprocess
import sys

from conftest import BUILD, WAIT, until
from test_python import INC, metrics

LOOP = """
import mmap, pathlib, protond, resource, sys
place, least, most = pathlib.Path(sys.argv[1]), 1 << 30, 0
while not (place / "stop").exists():
    with protond.scope("loop"):
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        with protond.scope("touch"):
            with mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as m:
                for page in range(0, 1 << 20, 4096):
                    m[page] = 1
        faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
        least, most = min(least, faults), max(most, faults)
        with protond.scope("rest"):
            pass
    (place / "turn").touch()
(place / "faults").write_text(f"{least} {most}")
"""


def test_which_ones(world):
    r = world.ctl("run", "--counters", "cycles,horses", "--", "true", check=False)
    assert r.returncode == 125 and "--counters 'cycles,horses': give up to 8 of these, with commas: instructions cycles " in r.stderr
    r = world.ctl("run", "--counters", "cycles", "-s", "overhead", "--", "sh", "-c", "echo $PROTOND_COUNTERS")
    assert r.stdout == "cycles\n" and world.sql("SELECT switches FROM session") == [(128 | 2,)]


def test_switched_while_it_runs(world):
    (world.home / "loop.py").write_text(LOOP)
    env = {**world.env, "PROTOND_COUNTERS": "task_clock,page_faults,instructions", "PYTHONPATH": str(BUILD / "lib/protond/python")}
    program = subprocess.Popen([BUILD / "bin/protonctl", "run", "-n", "x", "-b", "none", "--", sys.executable, "loop.py", world.home],
                               env=env, cwd=world.home)

    def turned():
        """What was counted by the end of a turn that has begun since, or words."""
        for _ in range(2):
            (world.home / "turn").unlink(missing_ok=True)
            until("the loop goes on", (world.home / "turn").exists)
        text = world.view("tree", "x").stdout
        return metrics(world, "x").get(("/loop/touch", "page_faults"), (INC, 0, 0))[2], "not counted: " in text

    try:
        until("it runs", (world.home / "turn").exists)
        assert turned() == (0, False)
        world.ctl("set", "x", "+counters")
        until("it counts, or says why not", lambda: any(turned()))
        world.ctl("set", "x", "-counters")
        until("it stops", lambda: turned() == turned() == turned())
    finally:
        (world.home / "stop").touch()
        assert program.wait(timeout=WAIT) == 0
    found, text = metrics(world, "x"), world.view("tree", "x").stdout
    for one in ("task_clock (ns)", "page_faults", "instructions"):
        assert any(name == one for _, name in found) or one.split()[0] in text.partition("not counted: ")[2], text
    if ("/loop/touch", "page_faults") in found:
        _, faults, times = found["/loop/touch", "page_faults"]
        least, most = map(int, (world.home / "faults").read_text().split())
        assert 8 < least and (least - 8) * (times - 1) <= faults <= most * times, "as the kernel's other count says; one may have begun before"
        _, ran, _ = found["/loop/touch", "task_clock (ns)"]
        assert 0 < ran <= world.cells("x")["/loop/touch"][1]
        assert found["/loop/rest", "page_faults"][1] < times
