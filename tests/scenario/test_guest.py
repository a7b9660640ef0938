# SPDX-License-Identifier: MIT. Programs that treat their descriptors and threads in ways of their own: the library is a
# guest there, and neither spoils what they do nor is spoilt by it.
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from conftest import BUILD, WAIT, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = BUILD / "lib/protond/python"
pytestmark = pytest.mark.preload  # a sanitizer's runtime is not in the interpreter
needs_python = pytest.mark.skipif(not (PACKAGE / "protond/_native.abi3.so").exists(),
                                  reason="the Python package was not built: no Python.h")


def python(world, code):
    """Runs a program that imports protond and leaves what it has to say, as JSON, in `out`."""
    path, out = world.home / "program.py", world.home / "out.json"
    path.write_text(f"import fcntl, json, os, sys, time\nout = open({str(out)!r}, 'w', "
                    "opener=lambda p, f: fcntl.fcntl(os.open(p, f), fcntl.F_DUPFD_CLOEXEC, 300))\n" + code)
    r = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=WAIT, cwd=world.home,
                       stdin=subprocess.DEVNULL, env={**world.env, "PYTHONPATH": str(PACKAGE)})
    assert r.returncode == 0, f"{r.returncode}\n{r.stdout}{r.stderr}"
    return json.loads(out.read_text())


@needs_python
def test_standard_streams_that_were_closed(world):
    """What is printed after that goes nowhere, and not into a file of the library's."""
    world.start(PROTOND_AUTO_SESSION="off")
    said = python(world, """
import protond
for fd in range(3):
    os.close(fd)
protond.start("job", backend="none")
taken = [fd for fd in range(3) if os.path.lexists(f"/proc/self/fd/{fd}")]
for i in range(100):
    with protond.scope("work"):
        pass
    for fd in range(3):
        try:
            os.write(fd, b"words of the program\\n" * 100)
        except OSError:
            pass
protond.finalize()
json.dump(taken, out)
out.close()
""")
    assert said == []
    assert world.cells("job")["/work"][0] == 100


@needs_python
@pytest.mark.parametrize("auto", ["scopes", "off"])
def test_all_descriptors_closed_by_the_program(world, auto):
    """As closefrom() does. What the program opens then is its own, and the next start() is as any other."""
    world.start(PROTOND_AUTO_SESSION=auto)
    said = python(world, """
import protond
with protond.scope("before"):
    pass
os.closerange(3, 200)
pipes = [os.pipe() for _ in range(10)]
began = time.monotonic()
protond.start("job", backend="none")
for i in range(1000):
    with protond.scope("work"):
        pass
protond.finalize()
took = time.monotonic() - began
for i, (r, w) in enumerate(pipes):
    os.write(w, b"%d" % i)
json.dump([took, [os.read(r, 10).decode() for r, w in pipes]], out)
out.close()
""")
    assert said[1] == [str(i) for i in range(10)]
    assert said[0] < 5, "it does not wait for what cannot come"
    assert world.cells("job")["/work"][0] == 1000 and not world.losses("job")


@needs_python
def test_a_ring_without_a_name_is_gone_with_its_descriptor(world):
    """Where no tmpfs is for a file the ring is a memfd, and nobody can open it again: said at once."""
    folder = tempfile.mkdtemp(prefix="pt.", dir="/var/tmp")
    world.env["PROTOND_RUNTIME_DIR"] = folder
    try:
        if subprocess.check_output(["stat", "-f", "-c", "%T", folder], text=True).strip() == "tmpfs":
            pytest.skip("every folder is on a tmpfs")
        world.start()
        said = python(world, """
import protond
with protond.scope("before"):
    pass
while not any("memfd:protond-ring" in line for line in open("/proc/self/maps")):
    time.sleep(0.01)
os.closerange(3, 200)
pipes = [os.pipe() for _ in range(10)]
began = time.monotonic()
try:
    for name in "first", "second", "third":  # while nobody has noticed yet the daemon still reads the ring
        protond.start(name, backend="none")
except protond.Error as e:
    json.dump([str(e), time.monotonic() - began], out)
out.close()
""")
        assert said[0].startswith("the program has closed libprotond's descriptors (closefrom(), close_range()): let it")
        assert said[1] < 5
    finally:
        world.stop()
        shutil.rmtree(folder)


@pytest.mark.parametrize("lines", [[], ["start own", "repeat 3 before"]], ids=["never_called", "called"])
@pytest.mark.parametrize("daemon", [True, False])
def test_a_main_thread_that_ends_before_the_others(world, daemon, lines):
    """main() ends by pthread_exit(): the process ends with the program's last thread, and not before."""
    if daemon:
        world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    for line in lines if daemon else lines[1:]:
        job.say(line)
    job.process.stdin.write("outlived\n")
    job.process.stdin.flush()
    assert job.process.wait(WAIT) == 0
    if daemon and lines:
        until("it is stored", lambda: world.state("own") == "finalized")
        assert {k: v[0] for k, v in world.cells("own").items() if k} == {"/before": 3, "/after main": 1}


def test_a_thread_that_outlives_main_for_long(world):
    """While it is there the process is: the library's threads alone end it."""
    job = world.job()
    job.say("@1 ping")
    job.process.stdin.write("outlived\n")
    job.process.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        job.process.wait(3)
    job.kill()


KILL_ME = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
static inline void kill_me(void)
{
	struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD)};
	struct sock_fprog p = {1, all};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
	getppid();
}
"""


def program(world, body):
    """A program of C, linked with the library."""
    (world.home / "x.c").write_text(f"#define _GNU_SOURCE\n{KILL_ME}#include <protond.h>\n#include <sys/resource.h>\n#include <errno.h>\n"
                                    f"#include <fcntl.h>\n#include <string.h>\n#include <sys/syscall.h>\nint main(void) {{ {body} }}")
    subprocess.run(["cc", f"-I{ROOT}/libclient", world.home / "x.c", "-o", world.home / "x", f"-L{BUILD}/lib", "-lprotond",
                    f"-Wl,-rpath,{BUILD}/lib"], check=True)
    return world.home / "x"


@pytest.mark.parametrize("end, status, switches", [("syscall(SYS_exit, 7);", 7, ()), ("syscall(SYS_exit, 7);", 7, ("-s", "cpu")),
                                                   ("kill_me();", -signal.SIGSYS, ("-s", "cpu"))],
                         ids=["system call", "sampled", "seccomp"])
def test_a_main_thread_that_ends_without_a_word(world, end, status, switches):
    """No destructor runs. The process ends as it would without the library, whose threads are all that is left."""
    world.start()
    job = subprocess.Popen([program(world, f"PROTOND_SCOPE(\"x\"); {end}").absolute()], env=world.env)
    until("main ended", lambda: pathlib.Path(f"/proc/{job.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    world.ctl("start", "s", "--all", *switches)
    assert job.wait(WAIT) == status


def test_scopes_of_a_thread_without_memory_are_counted(world):
    limit = "struct rlimit r = {8 << 20, 8 << 20}; setrlimit(RLIMIT_AS, &r);"
    x = program(world, limit + 'for (int i = 0; i < 1000; i++) { PROTOND_SCOPE("x"); } return 0;')
    assert "dropped 1000: the thread got no lane" in world.ctl("run", "--", x).stderr


def test_a_file_for_which_no_descriptor_is_left(world):
    x = program(world, 'while (open("/dev/null", O_RDONLY) >= 0) { } protond_start("s", 0); '
                       'return protond_finalize(PROTOND_ALL, "hatchet") != -EMFILE || strstr(protond_error(), "ulimit -n") == NULL;')
    world.ctl("run", "-q", "--", x)
    assert world.state("s") == "finalized"


OTHER_TIME = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "--fork", "--kill-child", "--time", "--monotonic", "100000"]


@pytest.mark.skipif(subprocess.run([*OTHER_TIME, "true"], capture_output=True).returncode != 0, reason="no time namespace may be made here")
@pytest.mark.parametrize("which", ["job", "daemon"])
def test_a_time_namespace(world, which):
    """CLOCK_MONOTONIC is another one there: what is said in it stands where it was all the same."""
    outer = subprocess.Popen([*(OTHER_TIME if which == "daemon" else []), BUILD / "bin/protond", "--private", "--foreground"], env=world.env,
                             stderr=subprocess.DEVNULL)
    try:
        until("it answers", world.answers)
        world.ctl("run", "-q", "-b", "none", "-d", "both", "-n", "s", "--", *(OTHER_TIME if which == "job" else []),
                  "sh", "-c", f"echo repeat 5 a | {BUILD}/tests/job >&2")
        (found,) = json.loads(world.view("sql", "s", "SELECT count(DISTINCT begin_ns) AS n, min(begin_ns) AS first, max(end_ns) AS last FROM scopes",
                                         "--json").stdout)["data"]["rows"]
    finally:
        world.ctl("daemon", "stop")
        outer.wait(WAIT)
    ((created, finalized, active),) = world.sql("SELECT created_ns, finalized_ns, active_ns FROM session WHERE name = 's'")
    assert found[0] == 5 and created < found[1] < found[2] < finalized and active <= finalized - created + 1e9, found
