# SPDX-License-Identifier: MIT. What users see when something does not work: docs/troubleshooting.md is held against it.
import ast
import fcntl
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile

import pytest

from conftest import BUILD, SANITIZED, WAIT, needs_another_user, needs_mounts, until
from test_doctor import NOBODY, library

# Who may mount is root of a namespace, and a job that says that it is another user than it is has no ring.
HIMSELF = "" if os.geteuid() == 0 else f"unshare --user --map-user={os.getuid()} --map-group={os.getgid()}"

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOC = (ROOT / "docs/troubleshooting.md").read_text()
MESSAGES = [m.strip() for m in re.findall(r"^\| ``(.+?)`` \|", DOC, re.M)]


def said(text, start):
    """The message of the page that begins so stands in text."""
    (message,) = [m for m in MESSAGES if m.startswith(start)]
    pattern = ".*?".join(map(re.escape, message.split("…")))
    assert re.search(pattern, text, re.S), f"{message!r} is not in\n{text}"


def constants(name):
    tree = ast.parse((ROOT / "tests/scenario" / name).read_text())
    return [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and len(n.value) > 7]


def test_every_message_is_one_that_is_printed():
    """It is brought about here or in test_skew.py; or other tests do that, or a GPU would be needed, and it stands in the
    sources."""
    text = "".join(f.read_text() for room in ("agent", "daemon", "libclient", "proto", "viewer")
                   for f in sorted((ROOT / room).rglob("*.[chp]*")) if f.suffix in (".c", ".h", ".py"))
    text = re.sub(r'"\s*"', "", text)
    here = [c for name in ("test_trouble.py", "test_skew.py") for c in constants(name)]
    for message in MESSAGES:
        if not any(message.startswith(c) or message in c for c in here):
            assert all(part in text for part in message.split("…")), message
    assert DOC.count("\n| ") == len(MESSAGES) + DOC.count("\n| printed |"), "each line of a table begins with a message"
    assert len(set(MESSAGES)) == len(MESSAGES) > 40
    for line in re.findall(r"^\| ``.*", DOC, re.M):
        assert re.fullmatch(r"\| ``.+`` \| \S.* \| \S.* \|", line), line


def run(world, *command, env=None, stdin=""):
    return subprocess.run([str(BUILD / "bin/protonctl"), "run", "-n", "r", *command], env={**world.env, **(env or {})},
                          input=stdin, capture_output=True, text=True, timeout=WAIT, cwd=world.home)


# --- no GPU data --------------------------------------------------------------------------------

def gpu_words(world, job):
    assert job.say("start s").startswith("0"), "scopes are recorded all the same"
    until("the job's words are there", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["gpu"] == "failed"])
    return world.ctl("jobs").stdout


def test_a_libcupti_that_is_none(world):
    world.start()
    said(gpu_words(world, world.job(env={"PROTOND_CUPTI_PATH": "/nonexistent/libcupti.so"})), "PROTOND_CUPTI_PATH holds no")


@pytest.mark.preload
def test_a_libcupti_of_another_kind(world):
    path = library(world.home / "libcupti.so", "int cuptiGetVersion(unsigned *v) { *v = 26; return 0; }")
    world.start()
    said(gpu_words(world, world.job(env={"PROTOND_CUPTI_PATH": path})), "… lacks …")


@needs_mounts
def test_no_libcupti(world):
    world.start()
    hidden = "mount -t tmpfs none /usr/local; mount --bind /dev/null /etc/ld.so.cache"
    if pathlib.Path(BUILD).is_relative_to("/usr/local") or list(pathlib.Path("/usr/lib").glob("*/libcupti.so*")):
        pytest.skip("a libcupti is where it cannot be hidden")
    env = dict.fromkeys(("CUDA_HOME", "PROTOND_CUPTI_PATH", "CUPTI_ROOT_PATH", "TRITON_CUPTI_LIB_PATH"), "")
    job = world.job("unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-ec", hidden + f'; exec {HIMSELF} "$@"', "sh", env=env)
    said(gpu_words(world, job), "no libcupti found")


def test_another_profilers_injection(world):
    r = run(world, "--", BUILD / "tests/job", env={"CUDA_INJECTION64_PATH": "/opt/nsight/lib.so"})
    assert r.returncode == 0
    said(r.stderr, "… names another tool")


# --- an empty profile ---------------------------------------------------------------------------

def test_nothing_to_see(world):
    said(world.view("tree", "@last", check=False).stderr, "nothing has been recorded yet")
    r = run(world, "--", BUILD / "tests/job")
    said(r.stderr, "(nothing was recorded)")
    said(r.stderr, "no GPU data")
    assert r.stderr.count("no GPU") == 1, "once"
    assert "no GPU data: the program launched no kernel" in run(world, "-q", BUILD / "tests/job").stderr
    said(world.view("tree", "@last").stdout, "(nothing was recorded)")
    said(run(world, "--", "true").stderr, "no process of this run reached protond")
    stranger = subprocess.Popen(["sleep", "60"], env=world.env)
    said(world.ctl("start", "x", "--pid", stranger.pid, check=False).stderr, "process … (…) does not load libprotond; start it")
    stranger.kill()
    stranger.wait()


def test_turned_off(world):
    world.start()
    job = world.job(env={"PROTOND_DISABLE": "1"})
    said(job.say("start s"), "PROTOND_DISABLE is set")


# --- what is not found --------------------------------------------------------------------------

def test_protonctl_alone(world):
    shutil.copy(BUILD / "bin/protonctl", world.home)
    def alone():
        return subprocess.run([world.home / "protonctl", "run", "--", "true"], env=world.env, capture_output=True, text=True)
    r = alone()
    assert r.returncode == 125
    said(r.stderr, "no daemon is running, and there is no protond beside protonctl")
    world.start()
    r = alone()
    assert r.returncode == 0, "the program runs"
    said(r.stderr, "libprotond.so.0 was not found beside protonctl")


@pytest.mark.parametrize("engine", [None, "text"])
def test_the_library_without_its_engine(world, engine):
    lib = world.home / "lib"
    lib.mkdir()
    shutil.copy(BUILD / "lib/libprotond.so.0", lib)
    if engine:
        (lib / "libprotond-agent.so.0").write_text(engine)
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job(env={"LD_LIBRARY_PATH": str(lib)})
    said(job.say("start s"), "cannot load libprotond-agent.so.0")
    job.say("repeat 10 a")
    assert job.quit() == 0


def test_programs_without_the_library(world):
    shutil.copy(BUILD / "tests/job", world.home)
    r = subprocess.run([world.home / "job"], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    if r.returncode == 0:
        pytest.skip("the loader has a libprotond")
    said(r.stderr, "error while loading shared libraries")


def python(world, code, path, **env):
    env = {**{k: v for k, v in world.env.items() if k != "LD_LIBRARY_PATH"}, "PYTHONPATH": str(path), **env}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, cwd=world.home).stderr


@pytest.mark.preload
@pytest.mark.skipif(not (BUILD / "lib/protond/python/protond/_native.abi3.so").exists(), reason="no Python package was built")
def test_packages_that_are_not_whole(world):
    package = world.home / "site/protond"
    shutil.copytree(BUILD / "lib/protond/python/protond", package)
    (world.home / "none").mkdir()
    said(python(world, "import protond", world.home / "none", PYTHONNOUSERSITE="1"), "No module named 'protond'")
    said(python(world, "import protond", package.parent), "ImportError: libprotond.so.0")
    (package / "lib").mkdir()
    for name in ("libprotond.so.0", "libprotond-agent.so.0"):
        shutil.copy(BUILD / "lib" / name, package / "lib")
    said(python(world, "import protond; protond.start('s')", package.parent, PATH="/nonexistent"),
         "no daemon runs, and no protond to start")
    said(python(world, "import protond; protond.activate(7)", package.parent), "Session has not been initialized")


@pytest.mark.preload
def test_two_libraries_in_one_process(world):
    world.start()
    shutil.copy(BUILD / "lib/libprotond.so.0", world.home)
    code = """
import ctypes, sys
first, second = (ctypes.CDLL(p) for p in sys.argv[1:])
second.protond_error.restype = ctypes.c_char_p
print(second.protond_start(b"s", None), second.protond_error().decode())
"""
    r = subprocess.run([sys.executable, "-c", code, BUILD / "lib/libprotond.so.0", world.home / "libprotond.so.0"],
                       env=world.env, capture_output=True, text=True)
    said(r.stdout, "another libprotond was loaded before this one")


# --- not permitted, and the daemon --------------------------------------------------------------

@needs_mounts
def test_a_job_of_another_user_namespace(world):
    """It takes itself for another user than the kernel says that it is."""
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job("unshare", "--user", "--map-user=7")
    said(job.say("start s"), "the ring says uid")
    assert f"breaks the rules of rings, the last: pid {job.pid}: the ring says uid" in world.ctl("status").stdout.replace("\n", " ").replace("           ", "")
    assert job.quit() == 0


@needs_another_user
def test_another_users_daemon(world):
    world.start()
    for mode in (0o700, 0o755):
        world.dir.chmod(mode)
        r = world.ctl("status", check=False, user=NOBODY)
        assert r.returncode in (1, 3)
        said(r.stderr, "…/control.sock may not be opened by you")
        job = world.job(user=NOBODY, group=NOBODY, extra_groups=[])
        assert job.say("start s").startswith("-")
        assert job.quit() == 0


def protond(world, *options):
    return subprocess.run([BUILD / "bin/protond", *options], env=world.env, capture_output=True, text=True, timeout=WAIT)


def test_where_no_daemon_can_be(world):
    said(world.ctl("status", check=False).stderr, "no protond runs in …")
    job = world.job()
    said(job.say("start s"), "no protond is running here")
    world.dir.chmod(0o755)
    r = protond(world, "--private", "--foreground")
    assert r.returncode == 1
    said(r.stderr, "… belongs to uid …")
    world.dir.chmod(0o700)
    world.start()
    r = protond(world, "--foreground")
    assert r.returncode == 3
    said(r.stderr, "another protond runs in …")
    assert protond(world, "--private").returncode == 0, "a private one that is not needed says nothing"


@pytest.mark.long
def test_a_lock_that_nobody_lets_go(world):
    with open(world.dir / "lock", "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        r = run(world, "--", "true")
    assert r.returncode == 125
    said(r.stderr, "the daemon does not start: …")
    said(r.stderr, "another protond holds …/lock and does not answer")


@pytest.mark.long
def test_a_daemon_that_never_comes(world):
    (world.home / "bin").mkdir()
    shutil.copy(BUILD / "bin/protonctl", world.home / "bin")
    (world.home / "bin/protond").write_text("#!/bin/sh\necho $$ >pid\nexec sleep 1000\n")
    (world.home / "bin/protond").chmod(0o755)
    r = subprocess.run([world.home / "bin/protonctl", "run", "--", "true"], env=world.env, capture_output=True, text=True,
                       timeout=WAIT, cwd=world.home)
    os.kill(int((world.home / "pid").read_text()), signal.SIGKILL)
    assert r.returncode == 125
    said(r.stderr, "protond was started but does not answer in …; see its log, …")


def test_events_that_were_dropped(world):
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_LANE_KB=64, PROTOND_LANES=2)
    job = world.job()
    job.say("start s")
    world.daemon.send_signal(signal.SIGSTOP)
    job.say("repeat 100000 a")
    world.daemon.send_signal(signal.SIGCONT)
    until("it has counted", lambda: world.ctl_json("jobs")["jobs"][0]["drops"])
    said(world.ctl("status").stdout, "… events were dropped")


# --- files --------------------------------------------------------------------------------------

@pytest.fixture
def stored(world):
    """A session in a database that no daemon has open."""
    job = BUILD / "tests/job"
    assert run(world, "-q", "--", job, stdin="repeat 3 a\n").returncode == 0
    world.ctl("shutdown")
    return world


def test_files_that_are_no_profiles(stored):
    world, path = stored, stored.home / "file"
    world.view("export", "r", "-o", world.home / "whole.hatchet")
    whole = (world.home / "whole.hatchet").read_bytes()
    path.write_bytes(b"")
    r = world.view("tree", path, check=False)
    assert r.returncode == 1 and re.search("not a .hatchet profile|is empty", r.stderr)
    for content in (b"hello", b'{"a": 1}', b"\x82", whole[:100], whole[:-3]):
        path.write_bytes(content)
        r = world.view("tree", path, check=False)
        assert r.returncode == 1 and r.stdout == ""
        said(r.stderr, "…: not a .hatchet profile")


def test_a_file_that_is_too_large(world):
    path = world.home / "x.hatchet"
    path.touch()
    os.truncate(path, 1025 << 20)
    r = world.view("tree", path, check=False)
    assert r.returncode == 1 and r.stdout == ""
    said(r.stderr, "… is over 1 GiB")
    with open(path) as f:
        assert "over 1 GiB" in world.view("tree", "-", check=False, stdin=f).stderr


def test_databases_that_cannot_be_read(stored):
    world, path = stored, stored.home / "file.db"
    for change, start in (("PRAGMA user_version = 99", "… was made by a newer protond"),
                          ("PRAGMA application_id = 7", "… is not a protond database")):
        shutil.copy(world.db, path)
        with sqlite3.connect(path) as db:
            db.execute(change)
        db.close()
        for words in (("tree", path), ("tree", "r", "--db", path)):
            r = world.view(*words, check=False)
            assert r.returncode == 1
            said(r.stderr, start)
    path.write_bytes(world.db.read_bytes()[:9000])
    said(world.view("tree", path, check=False).stderr, "… cannot be read")
    db = sqlite3.connect(world.home / "begun.db")
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    begun = {"PROTOND_DB": str(world.home / "begun.db"), "PROTOND_RUNTIME_DIR": str(world.home / "none")}
    said(world.view("sessions", env=begun, check=False).stderr, "… is empty: nothing has been recorded")
    assert "move it away" not in world.ctl("doctor", env=begun, check=False).stdout


@needs_another_user
def test_a_database_in_a_folder_that_may_not_be_written(stored):
    folder = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        folder.chmod(0o755)
        shutil.copy(stored.db, folder / "copy.db")
        (folder / "copy.db").chmod(0o644)
        for words in (("sessions", "--db"), ("tree", "r", "--db"), ("tree",)):
            r = subprocess.run([str(BUILD / "bin/protonview"), *words, str(folder / "copy.db")], env=stored.env, cwd="/", user=NOBODY,
                               capture_output=True, text=True, timeout=WAIT)
            assert r.returncode == 0 and r.stderr == "", r.stderr
    finally:
        shutil.rmtree(folder)


def test_a_start_that_fails_says_why_in_one_line(stored):
    world = stored
    db = sqlite3.connect(world.db)
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_schema SET sql = 'CREATE TABLE session(id INTEGER \"PRI' || char(10) || 'MARY KEY)' WHERE name = 'session'")
    db.commit()
    db.close()
    r = protond(world, "--private", "--foreground")
    assert r.returncode == 1 and r.stderr.count("\n") == 1 and str(world.db) in r.stderr
    r = run(world, "--", "true")
    said(r.stderr, "the daemon does not start: …")
    assert str(world.db) in r.stderr


def test_a_service_that_does_not_start_leaves_no_place(world):
    """A private daemon would refuse it: others may read there."""
    place = {"PROTOND_RUNTIME_DIR": str(world.dir / "new")}
    env = {**world.env, **place, "PROTOND_DB": str(BUILD / "flags")}
    r = subprocess.run([BUILD / "bin/protond", "--foreground"], env=env, capture_output=True, text=True, timeout=WAIT)
    assert r.returncode == 1 and not (world.dir / "new").exists()
    assert run(world, "--", "true", env=place).returncode == 0
    world.ctl("shutdown", env=place)


def test_no_room_for_a_ring(world):
    world.start()

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    said(world.job(preexec_fn=limit).say("start s"), "the limit on file sizes")


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's own memory is terabytes of addresses")
def test_no_addresses_for_a_ring(world):
    world.start()
    job = world.job(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (40 << 20, 40 << 20)))
    said(job.say("start s"), "no memory for the ring")


@needs_mounts
def test_a_full_tmpfs(world):
    """The daemon's directory is on it."""
    small = world.dir / "small"
    small.mkdir()
    inside = f"""
mount -t tmpfs -o size=1m,mode=700 none {small}
{shlex.quote(str(BUILD / 'bin/protond'))} --private --foreground 2>/dev/null & daemon=$!
until {shlex.quote(str(BUILD / 'bin/protonctl'))} status >/dev/null 2>&1; do :; done
head -c 900k /dev/zero > {small}/fill || true
echo start s | {shlex.quote(str(BUILD / 'tests/job'))}
kill $daemon
wait $daemon
"""
    r = subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-c", inside], env={
        **world.env, "PROTOND_RUNTIME_DIR": str(small)}, capture_output=True, text=True, timeout=WAIT * 2)
    said(r.stdout, "no memory for the ring")


@needs_mounts
def test_a_full_disk(world):
    """What was recorded is kept: only the file is missing."""
    world.start()
    at = world.home / "full"
    at.mkdir()
    inside = f"mount -t tmpfs -o size=4k none {at}; cd {at}; echo > file; exec {HIMSELF} \"$@\""
    unshare = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-ec", inside, "sh"]
    r = subprocess.run([*unshare, BUILD / "bin/protonctl", "run", "-n", "r", "-o", "r.hatchet", "--", BUILD / "tests/job"],
                       env=world.env, input="start own\nrepeat 3 a\nhatchet 0\n", capture_output=True, text=True, timeout=WAIT)
    assert r.returncode == 0, "the program's"
    said(r.stderr, "… was not written")
    said(r.stdout, "cannot write …")
    assert world.cells("r")["/a"][0] == 3


@needs_mounts
def test_a_full_disk_of_the_database(world):
    """The words are whole, also behind others, and the command in them is one."""
    inside = """
mount -t tmpfs -o size=400k,mode=700 none $1
"$2/protond" --private --foreground 2>/dev/null & daemon=$!
until "$2/protonctl" status >/dev/null 2>&1; do :; done
head -c 1M /dev/zero > $1/fill
"$2/protonctl" run -q -- "$3"
PATH=$2:$PATH
$4 && echo valid
kill $daemon
wait $daemon
"""
    at = world.home / ("long" * 20)
    at.mkdir()
    (command,) = [re.search("`(.*)`", m).group(1) for m in MESSAGES if m.startswith("no space for the database")]
    r = subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-c", inside, "sh", at, BUILD / "bin",
                        BUILD / "bin/protond-demo", command], env={**world.env, "PROTOND_DB": str(at / "store.db")},
                       capture_output=True, text=True, timeout=WAIT * 2)
    said(r.stderr, "no space for the database")
    assert "warning: the session could not be finalized: no space for the database: " in r.stderr and f"it is {at}/store.db (" in r.stderr
    assert r.stdout.endswith("0 sessions are deleted\nvalid\n"), r


# --- sessions -----------------------------------------------------------------------------------

def test_sessions_that_are_not(world):
    world.start()
    for words in (["@last"], ["tree", "@last"]):
        said(world.view(*words, check=False).stderr, "no session '…' (")
    world.ctl("start", "s", "--all")
    said(world.ctl("start", "s", "--all", check=False).stderr, "a session named '…' is live already")
    said(world.ctl("delete", "s", check=False).stderr, "session … '…' is still recording")
    world.ctl("finalize", "s")
    over = world.ctl("activate", "s", check=False).stderr
    said(over, "session … '…' has been finalized")
    assert "`protonview tree 1` shows it; `protonctl start" in over
    said(world.ctl("finalize", "nosuch", check=False).stderr, "no session '…'; `protonctl")
    said(world.view("tree", "nosuch", check=False).stderr, "no session '…' (")
    job = world.job()
    said(job.say("finalize 7"), "no session …")
    assert job.say("start s") == "0" and job.say("start s") == "0", "the same one"
    assert job.say("finalize 0") == "0"
    said(job.say("finalize 0"), "no session …")


def test_a_word_that_is_no_session(world):
    """Both tools end as each other does, and protonview does with and without a daemon."""
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    for name in ("one", "two"):
        job.say("start " + name)
    world.ctl("finalize", "one")
    world.ctl("finalize", "two")
    world.stop()
    db = sqlite3.connect(world.db)
    for i, name in enumerate(("one", "two")):
        db.execute("UPDATE session SET uuid = ? WHERE name = ?", (bytes([0xab, 0xcd, *[i] * 14]), name))
    db.commit()
    db.close()
    wrong = {"@foo": 2, "@-x": 2, "abcd": 2, "@-99": 1, "nobody": 1}
    assert {w: world.view("tree", w, check=False).returncode for w in wrong} == wrong
    world.start(PROTOND_AUTO_SESSION="off")
    assert {w: world.view("tree", w, check=False).returncode for w in wrong} == wrong
    assert {w: world.ctl("finalize", w, check=False).returncode for w in wrong} == wrong
    said(world.view("tree", "@foo", check=False).stderr, "'…' is not a session reference")


# --- a daemon that does not answer --------------------------------------------------------------

def ask(world, *command):
    """It has said that it waits, and still does."""
    asks = subprocess.Popen([str(BUILD / "bin" / command[0]), *command[1:]], env=world.env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said(asks.stderr.readline(), "protond (pid …) is stopped and does not answer")
    assert asks.poll() is None
    return asks


@pytest.mark.long
def test_a_stopped_daemon(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    job.say("start s")
    job.say("repeat 10 a")
    assert "a" in world.view("tree", "s").stdout
    world.daemon.send_signal(signal.SIGSTOP)
    asks = [ask(world, *c) for c in (("protonctl", "status"), ("protonview", "tree", "nobody"), ("protonview", "tree", "s"),
                                     ("protonview", "sessions", "--json"))]
    for tool, status in zip(asks, (3, 3, 4, 4)):
        out, err = tool.communicate(timeout=WAIT)
        assert tool.returncode == status, (out, err)
        if "warnings" in out:
            err = json.loads(out)["warnings"][0]
        said(err, "protond (pid …) is stopped; ")
        assert f"kill -CONT {world.daemon.pid}" in err
        if status == 4:
            assert "a" in out and "what is shown was stored before" in err
    late = ask(world, "protonctl", "status")
    world.daemon.send_signal(signal.SIGCONT)
    assert late.wait(WAIT) == 0
    late = ask(world, "protonctl", "run", "-q", "--", "kill", "-STOP", str(world.daemon.pid))  # in the midst of a run
    world.daemon.send_signal(signal.SIGCONT)
    assert late.wait(WAIT) == 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["python", "protond"])
def test_what_listens_but_does_not_answer(world, name):
    """This process does: it is taken for a daemon by its name."""
    comm = pathlib.Path("/proc/self/comm")
    was = comm.read_text()
    comm.write_text(name)
    try:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(world.dir / "control.sock"))
            silent.listen()
            r = world.ctl("status", check=False)
    finally:
        comm.write_text(was)
    assert r.returncode == 3
    said(r.stderr, "protond (pid …) did not answer in time" if name == "protond" else "what holds control.sock did not answer")
    who = f"protond (pid {os.getpid()})" if name == "protond" else "what holds control.sock"
    assert f"{who} does not answer; waiting up to 5 s" in r.stderr and f"{who} did not answer in time" in r.stderr
