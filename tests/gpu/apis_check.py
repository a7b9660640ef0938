# SPDX-License-Identifier: MIT. apis_check.py: calls of the CUDA runtime and driver against Kineto's rows of the same program, and what it costs to know them.
"""apis_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import collections
import re
import subprocess
import sys

from judge import check, judge
from sync_room import ROUNDS, THREADS, kineto, recorded
from torch_room import CTL, DIR, costs, room, sql

# What only reads (RUNTIME_READ_CBIDS, DRIVER_READ_CBIDS of cupti_abi.h) is in ours when all is asked for.
READS = {"cudaGetDevice", "cudaGetLastError", "cudaPeekAtLastError", "cudaDeviceGetAttribute", "cuCtxGetCurrent", "cuCtxGetDevice",
         "cuCtxGetDevice_v2", "cuDeviceGetAttribute", "cuDevicePrimaryCtxGetState", "cuKernelGetAttribute"}
# What Kineto leaves out of its rows; of the driver it has only calls that launch.
NOT_THEIRS = READS | {"cudaSetDevice"}


def plain(name):
    return re.sub(r"(_ptsz|_ptds)?(_v\d{4,})?$", "", name)


def ours(env, scopes):
    """{call: (how often, ns)} in the program's own scopes, which is what Kineto's run has, too."""
    got = collections.defaultdict(lambda: [0, 0])
    for path, name, metric, value in sql(env, "select n.path, n.name, m.name, m.value from nodes n join metrics m using (node) "
                                              "where n.kind = 'call' and m.name in ('api_calls', 'api_time (ns)')"):
        if any(s in path for s in scopes):
            got[plain(name)][metric != "api_calls"] += value
    return got


def kinetos():
    got = collections.defaultdict(lambda: [0, 0])
    for e in kineto()[1]:
        if e.get("cat") in ("cuda_runtime", "cuda_driver"):
            got[plain(e["name"])][0] += 1
            got[plain(e["name"])][1] += e["dur"] * 1e3
    return got


def counts():
    env, _ = recorded("-d", "both", "-s", "api")
    got, theirs = ours(env, ("thread-", "alloc")), kinetos()
    for name in sorted(set(got) | set(theirs)):
        print(f"   {name:40} ours {got[name][0]:6} {got[name][1] / 1e6:10.3f} ms   Kineto {theirs[name][0]:6} {theirs[name][1] / 1e6:10.3f} ms")
    # Kineto's own beginning and end wait for the device, outside of every scope.
    # torch's allocator asks the driver when it needs to, in another run at another time.
    both = [n for n in theirs if theirs[n][0] and n not in NOT_THEIRS | {"cudaMalloc", "cudaDeviceSynchronize"}]
    wrong = {n: (got[n][0], theirs[n][0]) for n in both if got[n][0] != theirs[n][0]}
    check("each call as often as Kineto's rows of it", len(both) >= 6 and not wrong, f"(ours, Kineto's): {wrong}")
    check("cudaDeviceSynchronize as often as it was made", got["cudaDeviceSynchronize"][0] == ROUNDS * THREADS,
          f"{got['cudaDeviceSynchronize'][0]} of {ROUNDS * THREADS}")
    for name in ("cudaStreamSynchronize", "cudaEventSynchronize"):
        check(f"{name}: as long as Kineto says, to 5 %", theirs[name][1] and abs(got[name][1] / theirs[name][1] - 1) <= 0.05,
              f"{got[name][1]} ns, {theirs[name][1]} ns")
    every = sql(env, "select count(*) from calls where class in ('api', 'api_error')")[0][0]
    total = sql(env, "select sum(m.value) from nodes n join metrics m using (node) where m.name = 'api_calls'")[0][0]
    check("the timeline has as many as the tree", every == total, f"{every}, {total}")
    twice = sql(env, "select count(*) from calls a join calls b on a.correlation = b.correlation and a.pid = b.pid and a.tid = b.tid "
                     "and a.begin_ns < b.begin_ns where a.class like 'api%' and b.class like 'api%'")[0][0]
    check("no call is inside of another of the same correlation", twice == 0, f"{twice}")
    named = sql(env, "select count(*) from nodes where kind = 'call' and name = '[call]'")[0][0]
    check("every call has a name", named == 0, f"{named} nodes without")
    names = [r[0] for r in sql(env, "select distinct name from nodes where kind = 'call'")]
    check("what only reads is not there", not READS & set(names), str(READS & set(names)))
    check("no name has a version", not [n for n in names if re.search(r"_v\d{4,}$", n)], str(names))


def all_of_them():
    """With what only reads: the other calls as often as without."""
    few = ours(recorded("-d", "both", "-s", "api")[0], ("thread-", "alloc"))
    every = ours(recorded("-d", "both", "-s", "api", PROTOND_API_ALL="1")[0], ("thread-", "alloc"))
    check("what only reads is there when it is asked for", READS & set(every), str(sorted(every)))
    wrong = {n: (few[n][0], every[n][0]) for n in set(few) | set(every) if n not in READS | {"cudaMalloc"} and few[n][0] != every[n][0]}
    check("and the others are as many", not wrong, f"(without, with): {wrong}")


def errors():
    """A copy that cannot be is one call that failed."""
    env = room()
    env["PYTHONPATH"] = str(DIR / "lib/protond/python")
    code = ("import ctypes, torch\nfrom protond import scope\ntorch.zeros(1, device='cuda')\n"
            "rt = torch.cuda.cudart()\nwith scope('bad'):\n for _ in range(7): rt.cudaHostUnregister(4096)\n")
    r = subprocess.run([CTL, "run", "-n", "x", "-k", "none", "-s", "api", "--", sys.executable, "-c", code], env=env,
                       capture_output=True, text=True, timeout=280)
    got = {(n, m): v for n, m, v in sql(env, "select n.name, m.name, m.value from nodes n join metrics m using (node) where n.kind = 'call' "
                                              "and m.name in ('api_calls', 'api_errors') and n.name = 'cudaHostUnregister'")}
    check("seven calls that failed are seven", r.returncode == 0 and got.get(("cudaHostUnregister", "api_errors")) == 7 and
          got.get(("cudaHostUnregister", "api_calls")) == 7, f"{got} {r.stderr[-300:]}")


def off():
    env, _ = recorded("-d", "both")
    check("off: none of it", not sql(env, "select * from nodes where kind = 'call'"), "calls in a session without a switch")


def cost():
    costs("api", {"w1": 1.10, "w3": 1.10})


judge((counts, all_of_them, errors, off, cost), sys.argv[2:])
