# SPDX-License-Identifier: MIT. A program with an s bit has rights that whoever started it has not: it is left alone.
import errno
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD
from test_trouble import said

HERE = pathlib.Path(__file__).resolve().parent
NOBODY = 65534
SECURE = [  # mode and group of the program, and who starts it: each has root's rights over the daemon
    pytest.param(0o4755, 0, dict(user=NOBODY, group=NOBODY, extra_groups=[]), id="setuid"),
    pytest.param(0o2755, NOBODY, {}, id="setgid"),
]


@pytest.fixture
def program():
    """The job of the scenarios with library and engine inside it: the loader looks for no library of ours
    for a program with an s bit. In a directory where another user finds it."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="pt."))
    path.chmod(0o755)
    flags = shlex.split((BUILD / "flags").read_text())
    subprocess.run([*flags, f"-I{HERE.parents[1] / 'libclient'}", "-o", path / "job", HERE / "job.c",
                    "-Wl,-u,protond_engine_v1", BUILD / "lib/libprotond.a",
                    *sorted((BUILD / "ar").glob("agent*.a")), *sorted((BUILD / "ar/agent").rglob("*.a")),
                    BUILD / "ar/proto/peek.a",
                    "-lpthread", "-ldl"], check=True, cwd=path)
    yield path / "job"
    shutil.rmtree(path)


def seen(world, job):
    """(is it in `protonctl jobs`, rings there are, its threads)"""
    return (job.pid in [j["pid"] for j in world.ctl_json("jobs")["jobs"]],
            len(list(world.dir.glob("rings/**/*.ring"))), len(os.listdir(f"/proc/{job.pid}/task")))


def is_secure(job):
    """Two of its user's or group's numbers differ: that is when the kernel sets AT_SECURE."""
    lines = pathlib.Path(f"/proc/{job.pid}/status").read_text().splitlines()
    ids = [line.split()[1:3] for line in lines if line.startswith(("Uid:", "Gid:"))]
    return any(real != effective for real, effective in ids)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a program that is another user's")
@pytest.mark.parametrize("mode, group, who", SECURE)
def test_a_program_with_an_s_bit_is_left_alone(world, program, mode, group, who):
    world.start()
    os.chown(program, 0, group)
    program.chmod(mode)
    job = world.job(program, **who)
    job.say("enter scope")
    if not is_secure(job):
        pytest.skip(f"s bits have no effect in {program.parent} (nosuid, or no_new_privs)")
    why = job.say("start s")
    assert why.startswith(f"-{errno.EACCES} ")
    said(why, "a set-user-ID program is not profiled")
    job.say("repeat 1000 inner")
    assert job.say("depth") == "1", "the program's own scopes are kept"
    job.say("exit")
    assert seen(world, job) == (False, 0, 1)
    assert job.quit() == 0

    program.chmod(0o755)
    job = world.job(program)
    assert job.say("start s").startswith("0"), "the same file without the bit"
    there, rings, threads = seen(world, job)
    assert there and rings == 1 and threads > 1
    assert job.quit() == 0
