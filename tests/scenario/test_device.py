# SPDX-License-Identifier: MIT. protond-device against a stand-in for NVML (fake_nvml.c) and made-up /proc and /sys.
import csv
import json
import os
import socket
import struct
import subprocess

import pytest

from conftest import BUILD, WAIT, readable, until, with_nvml
from test_exports import Perfetto

DEVICE = str(BUILD / "bin/protond-device")
WANT = struct.Struct("<IIII")
MAGIC = 0x31564450


def printed(fake, *options, count=2):
    r = subprocess.run([DEVICE, "--print", "--hz", "10", "--count", str(count), *options], env=with_nvml(fake),
                       capture_output=True, text=True, timeout=WAIT)
    assert r.returncode == 0, r.stderr
    return [json.loads(line) for line in r.stdout.splitlines()], r.stderr


def test_what_a_gpu_says_is_read():
    rows, said = printed("", count=2)
    gpu = [r for r in rows if r["gpu"] == 0]
    assert [r["power"] for r in gpu] == [100, 200]  # the first look, 0 W, is where counters begin
    assert gpu[0]["sm_clock"] == 1410 and gpu[0]["sm_clock_max"] == 1980
    assert gpu[0]["memory_used"] == 700 and gpu[0]["pci"] == "0000:1b:00"
    assert gpu[0]["sm_active"] == gpu[0]["dram_active"] == 10 and "nvlink_rx" not in gpu[0]
    # What is slow was asked for at the first look and the last reading: two readings later.
    assert "held_by_power" not in gpu[0] and gpu[1]["held_by_power"] == 10e6
    assert gpu[1]["processes"] == {"77": 600}  # the other one's memory is not known
    assert gpu[0]["xid_errors"] == 0 and gpu[1]["xid_errors"] == 1 and gpu[1]["xid"] == 79
    assert "temperature" not in gpu[0] and said.count("\n") == 1 and "too old" in said


@pytest.mark.parametrize("fake, words, gpus", [
    ("absent", "there is no libnvidia-ml.so.1", 0), ("none", "NVML finds no GPU", 0), ("init", "NVML failed (Unknown Error)", 0),
    ("perm", "keeps some counters for administrators (Insufficient Permissions)", 2), ("mig", "split by MIG", 2)])
def test_a_trouble_is_said_once_and_the_rest_is_read(fake, words, gpus):
    rows, said = printed(fake)
    assert said.count(words) == 1 and "what helps: " in said
    assert len([r for r in rows if r["gpu"] == 0]) == gpus and all("sm_active" not in r for r in rows)
    assert len([r for r in rows if r["gpu"] is None]) == 2


def test_odd_answers_harm_nothing():
    rows, _ = printed("odd")
    gpu = [r for r in rows if r["gpu"] == 0]
    assert len(gpu[0]["name"]) == 63 and 0 < gpu[1]["xid_errors"] <= 64
    assert set(gpu[1]["processes"]) == {"77", "0"}


def put(root, path, text):
    f = root / path
    f.parent.mkdir(parents=True, exist_ok=True)
    f.write_text(text)


def test_the_host_is_read_below_a_root(tmp_path):
    put(tmp_path, "proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0 total=99\n")
    put(tmp_path, "proc/net/dev", "Inter-| Receive\n eth0: 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n  br0:9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n")
    put(tmp_path, "sys/class/net/eth0/device", "")
    put(tmp_path, "proc/diskstats", " 8 0 sda 1 0 10 0 1 0 20 0 0 0 0\n 8 1 sda1 1 0 10 0 1 0 20 0 0 0 0\n")
    put(tmp_path, "sys/block/sda/device", "")
    put(tmp_path, "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "100\n")
    p = subprocess.Popen([DEVICE, "--print", "--hz", "10", "--root", str(tmp_path)], env=with_nvml("absent"),
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        first = json.loads(p.stdout.readline())
        assert {k: first[k] for k in ("cpu_wait", "net_rx", "net_tx", "disk_read", "disk_written", "ib_rx")} == dict.fromkeys(
            ("cpu_wait", "net_rx", "net_tx", "disk_read", "disk_written", "ib_rx"), 0) and "ib_tx" not in first
        for path, old, new in (("proc/pressure/cpu", "total=7", "total=9"), ("proc/net/dev", "1000", "1700"),
                               ("proc/diskstats", " 10 ", " 13 "), ("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "100", "101")):
            f = tmp_path / path
            with open(f, "r+b", buffering=0) as at:  # in one write, for it is being read
                at.write(f.read_text().replace(old, new).encode())
        total = dict.fromkeys(("cpu_wait", "net_rx", "disk_read", "ib_rx"), 0)
        while 0 in total.values():
            row = json.loads(p.stdout.readline())
            total = {k: v + row.get(k, 0) for k, v in total.items()}
        assert total == {"cpu_wait": 2000, "net_rx": 700, "disk_read": 3 * 512, "ib_rx": 4}
    finally:
        p.terminate()
        p.wait(WAIT)


def test_over_a_socket_it_reads_only_while_it_is_asked():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    p = subprocess.Popen([DEVICE], env=with_nvml("none"), preexec_fn=lambda: os.dup2(theirs.fileno(), 3), pass_fds=(3,))
    theirs.close()
    for trouble in (4, 2):  # the stand-in lacks functions, and has no GPU
        assert readable(ours)
        assert struct.unpack_from("<IIIi", ours.recv(4096)) == (MAGIC, 2, trouble, 0)
    ours.send(b"nonsense")
    ours.send(WANT.pack(MAGIC, 3, 1000, 0))  # ten a second is the most
    for _ in range(2):
        assert readable(ours)
        magic, kind, gpu, _, begin, end, _ = struct.unpack_from("<IIIIQQQ", ours.recv(4096))
        assert (magic, kind, gpu) == (MAGIC, 1, 0xffffffff) and end > begin
    ours.send(WANT.pack(MAGIC, 3, 0, 0))
    ours.close()
    assert p.wait(WAIT) == 0


def test_a_word_that_is_none_is_refused():
    for line, words in ((["--hz", "11", "--print"], "1 to 10"), (["--count", "2"], "go with --print"), ([], "--print"), (["x"], "options only")):
        r = subprocess.run([DEVICE, *line], env=with_nvml("absent"), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT)
        assert r.returncode == 2 and words in r.stderr, line


def helper_of(world):
    """The child of the world's daemon; None: there is none."""
    children = open(f"/proc/{world.daemon.pid}/task/{world.daemon.pid}/children").read().split()
    return int(children[0]) if children else None


def test_a_session_has_readings_whatever_becomes_of_the_helper(world):
    world.env.update(with_nvml("none"), PROTOND_RUNTIME_DIR=str(world.dir), PROTOND_DB=str(world.db))
    world.start(PROTOND_DEVICE_HZ="10")
    job = world.job()
    job.say("enter a")
    world.ctl("start", "s", "-d", "both", "--pid", str(job.pid))
    rows = "SELECT r.begin_ns FROM reading r JOIN session s ON s.id=r.session WHERE s.name='s' AND r.gpu=4294967295"
    # Readings alone are no reason for a transaction.
    until("the host's readings are stored", lambda: (job.say("enter b"), job.say("exit"), world.sql(rows))[-1], interval=0.05)
    first = helper_of(world)
    os.kill(first, 9)
    until("another helper", lambda: helper_of(world) not in (None, first))
    log = world.log()
    assert log.count("event=device_lost") == 1 and "tries=1" in log
    assert log.count("NVML finds no GPU") == 1  # though the second helper says it, too
    world.ctl("finalize", "s")
    job.quit()
    world.view("export", "s", "-o", "x.json")
    world.view("export", "s", "-o", "x.pftrace")
    events = [e for e in json.loads((world.home / "x.json").read_text())["traceEvents"] if e["ph"] == "C"]
    ours = {name: [(round(e["ts"] * 1000), e["args"]["value"]) for e in events if e["name"] == name] for name in {e["name"] for e in events}}
    theirs = Perfetto(world.home / "x.pftrace").counters
    assert "host net_rx (bytes/s)" in ours and ours.keys() == theirs.keys()
    base = json.loads((world.home / "x.json").read_text())["baseTimeNanoseconds"]
    assert all([(ns + base, v) for ns, v in ours[name]] == [(ns, v) for ns, v in theirs[name]] for name in ours)
    world.view("series", "s", "host net_rx", "-o", "x.csv")
    stored = json.loads(world.view("series", "s", "host net_rx", "--json").stdout)["data"]["rows"]
    assert len(stored) == len(ours["host net_rx (bytes/s)"]) and sorted(r[-1] for r in stored) == pytest.approx(sorted(v for _, v in ours["host net_rx (bytes/s)"]))
    table = list(csv.DictReader((world.home / "x.csv").open(newline="")))
    assert [(r["series"], r["unit"], float(r["value"])) for r in table] == [("host net_rx", "bytes/s", pytest.approx(r[-1])) for r in stored]
    shown = world.view("series", "s", "host net_rx").stdout
    assert "OVER TIME" in shown and "TIME s" in shown and f"{stored[0][4] / 1e9:.6f}" in shown
    assert "no series has 'loss'" in world.view("series", "s", "loss", check=False).stderr


def test_a_helper_that_hangs_hurts_nobody(world):
    """In the driver, at its first look. That it is let go of after ten seconds is daemon_device.c's."""
    world.env.update(with_nvml("hang"), PROTOND_RUNTIME_DIR=str(world.dir), PROTOND_DB=str(world.db))
    world.start(PROTOND_DEVICE_HZ="10")
    job = world.job()
    world.ctl("start", "s", "--pid", str(job.pid))
    job.say("enter a")
    until("the helper waits in the driver", lambda: helper_of(world) and "/libnvidia-ml" in open(f"/proc/{helper_of(world)}/maps").read())
    helper = helper_of(world)
    job.say("exit")
    world.ctl("finalize", "s")
    assert [r[0] for r in world.sql("SELECT count FROM cell c JOIN session s ON s.id=c.session WHERE s.name='s' AND count>0")] == [1]
    job.quit()
    assert not world.ctl_json("status")["warnings"]
    world.ctl("shutdown")
    until("it has gone with the daemon", lambda: not os.path.exists(f"/proc/{helper}"))
