# SPDX-License-Identifier: MIT. before.py: a graph captured while armed, before the session that sees it replayed.
"""before.py DIR [RAW]: prints the session's tree; RAW: a raw dump of CUPTI goes there. Exit 1 when the
nodes do not stand under the scopes they were captured in."""
import os
import pathlib
import subprocess
import sys
import tempfile

DIR = pathlib.Path(sys.argv[1]).resolve()
room = tempfile.mkdtemp(prefix="pdbefore", dir="/dev/shm")
env = dict(os.environ, PROTOND_RUNTIME_DIR=room, PROTOND_DB=room + "/db", PROTOND_GPU="armed",
           PROTOND_AUTO_SESSION="off", CUDA_INJECTION64_PATH=str(DIR / "lib/libprotond.so.0"))
if len(sys.argv) > 2:
    os.makedirs(sys.argv[2], exist_ok=True)
    env["PROTOND_RAW_DUMP"] = sys.argv[2]


def ctl(*args):
    r = subprocess.run([str(DIR / "bin/protonctl"), *args], env=env, capture_output=True, text=True, timeout=60)
    print("$ protonctl", *args, "->", r.returncode, r.stdout, r.stderr, sep=" ")
    return r


daemon = subprocess.Popen([str(DIR / "bin/protond"), "--private", "--foreground"], env=env)
for _ in range(200):
    if os.path.exists(room + "/control.sock"):
        break
    subprocess.run(["sleep", "0.05"])
job = subprocess.Popen([str(DIR / "gpu/work"), "before", "10"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print("job says:", job.stdout.readline().strip())
ctl("jobs")
ctl("start", "before", "--pid", str(job.pid))
out, _ = job.communicate("go\n", timeout=60)
print(out)
ctl("finalize", "before")
tree = subprocess.run([str(DIR / "bin/protonview"), "tree", "before", "-m", "time/ms,count"], env=env, capture_output=True, text=True, timeout=60)
print(tree.stdout, tree.stderr)
daemon.terminate()
daemon.wait(30)
ok = "<captured_at>" in tree.stdout and "layer0" in tree.stdout and "layer1" in tree.stdout
print("ok" if ok else "FAIL", "captured before the session")
sys.exit(0 if ok else 1)
