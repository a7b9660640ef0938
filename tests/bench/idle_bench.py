# SPDX-License-Identifier: MIT. What a daemon costs that has nothing to do.
"""idle_bench.py BUILD JOB [SECONDS]: eight jobs, recorded by their automatic sessions, sit in a scope and do
nothing. Prints the daemon's processor time (user and system, all threads) over SECONDS (60) as a share of
one core, and its resident memory; beside it that of a process which wakes as often and does nothing, for half
as long. JOB is tests/scenario/job.c. Exit status 1: a target was missed."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

JOBS = 8
LOOK = 0.02  # QUIET_MS of daemon/daemon.c: how often an idle daemon looks at the rings
SETTLE = 10  # longer than QUIET_NS there: how long a daemon looks more often after the last flow
CORE_PERCENT, RSS_MIB = 0.25, 16


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # the clock that clock_getcpuclockid(3) gives: utime + stime in ns


def rss_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def jobs_seen(build, env):
    r = subprocess.run([build / "bin/protonctl", "jobs", "--json"], env=env, capture_output=True, text=True)
    return [j["events"] for j in json.loads(r.stdout)["data"]["jobs"]] if r.returncode == 0 else []


def say(job, line):
    job.stdin.write(line + "\n")
    job.stdin.flush()
    assert job.stdout.readline().startswith("ok"), "the job did not answer"


def wait_for(what, test):
    end = time.monotonic() + 30
    while not test():
        if time.monotonic() > end:
            sys.exit(f"idle_bench: {what} did not happen")
        time.sleep(0.05)


def percent_of_core(pid, seconds):
    spent, begin = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - spent) / (time.monotonic() - begin)


def floor(seconds):
    pid = os.fork()
    while pid == 0:
        time.sleep(LOOK)
    try:
        return percent_of_core(pid, seconds)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def main(build, program, seconds):
    home = pathlib.Path(tempfile.mkdtemp(prefix="idle_bench.", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PROTOND_", "XDG_"))}
    env.update(PROTOND_RUNTIME_DIR=str(home), PROTOND_DB=str(home / "store.db"), LD_LIBRARY_PATH=str(build / "lib"))
    jobs, daemon = [], None
    try:
        daemon = subprocess.Popen([build / "bin/protond", "--private", "--foreground"], env=env,
                                  stderr=subprocess.DEVNULL)
        wait_for("the daemon's socket", lambda: (home / "control.sock").exists())
        for _ in range(JOBS):
            jobs.append(subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            say(jobs[-1], "enter idle")

        def recorded():
            for job in jobs:
                say(job, "repeat 1 tick")
            events = jobs_seen(build, env)
            return len(events) == JOBS and all(events)
        wait_for(f"a record of each of {JOBS} jobs", recorded)
        time.sleep(SETTLE)
        percent = percent_of_core(daemon.pid, seconds)
        rss = rss_mib(daemon.pid)
        assert len(jobs_seen(build, env)) == JOBS, "a job was lost on the way"
    finally:
        for p in filter(None, [*jobs, daemon]):
            p.terminate()
            p.wait()
        shutil.rmtree(home, ignore_errors=True)
    print(f"daemon idle, {JOBS} idle jobs: {percent:.3f} % of a core over {seconds:g} s, {rss:.1f} MiB; "
          f"target {CORE_PERCENT} %, {RSS_MIB} MiB; waking alone: {floor(seconds / 2):.3f} %")
    return percent > CORE_PERCENT or rss > RSS_MIB


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 60))
