# SPDX-License-Identifier: MIT. The Python package where a program does what few do.
import textwrap

import pytest

from test_python import each_python, metrics, program, ran, tree

pytestmark = pytest.mark.preload


# --- the environment ----------------------------------------------------------------------------

@pytest.mark.parametrize("autostart", ["0", "1"])
def test_variables_are_set_while_sessions_start(world, autostart):
    """os.environ is another thread's to change: it moves the table that getenv() looks through."""
    if autostart == "0":
        world.start(PROTOND_AUTO_SESSION="off")
    code = """
        import itertools, os, threading, time, protond
        done = False
        def change():
            for n in itertools.count():
                for i in range(3000):
                    os.environ[f"V{n}_{i}"] = "a value of some length"
                for i in range(3000):
                    del os.environ[f"V{n}_{i}"]
                if done:
                    return
        t = threading.Thread(target=change)
        t.start()
        try:
            for i in range(30):
                protond.finalize(protond.start(f"s{i}", backend="none"), None)
                time.sleep(0.01)
        finally:
            done = True
            t.join()
    """
    for _ in range(4):
        ran(program(world, code, env={"PROTOND_AUTOSTART": autostart}))
