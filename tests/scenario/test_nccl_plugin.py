# SPDX-License-Identifier: MIT. tests/gpu/nccl_plugin.c, loaded by a program that calls it as NCCL would: what it counts, by both interfaces.
import json
import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "gpu/nccl_plugin.c"
HOST = """
import ctypes as c, sys
path, abi = sys.argv[1], int(sys.argv[2])
class Coll(c.Structure):
    _fields_ = [("number", c.c_uint64), ("func", c.c_char_p), ("a", c.c_void_p), ("b", c.c_void_p), ("count", c.c_size_t), ("root", c.c_int),
                ("datatype", c.c_char_p), ("channels", c.c_uint8), ("warps", c.c_uint8), ("algo", c.c_char_p), ("proto", c.c_char_p)]
class P2p(c.Structure):
    _fields_ = [("func", c.c_char_p), ("buffer", c.c_void_p), ("datatype", c.c_char_p), ("count", c.c_size_t), ("peer", c.c_int), ("channels", c.c_uint8)]
class ProxyOp(c.Structure):
    _fields_ = [("pid", c.c_int), ("channel", c.c_uint8), ("peer", c.c_int), ("steps", c.c_int), ("chunk", c.c_int), ("is_send", c.c_int)]
class KernelCh(c.Structure):
    _fields_ = [("channel", c.c_uint8), ("timer", c.c_uint64)]
class Of(c.Union):
    _fields_ = [("coll", Coll), ("p2p", P2p), ("op", ProxyOp), ("ch", KernelCh)]
class Descr(c.Structure):
    _fields_ = [("type", c.c_uint8 if abi == 4 else c.c_uint64), ("parent", c.c_void_p), ("rank", c.c_int), ("of", Of)]
p = c.c_void_p
INIT = (c.CFUNCTYPE(c.c_int, c.POINTER(p), c.POINTER(c.c_int), c.c_char_p, c.c_uint64, c.c_int, c.c_int, c.c_int, p) if abi == 4 else
        c.CFUNCTYPE(c.c_int, c.POINTER(p), c.c_uint64, c.POINTER(c.c_int), c.c_char_p, c.c_int, c.c_int, c.c_int, p))
class Profiler(c.Structure):
    _fields_ = [("name", c.c_char_p), ("init", INIT), ("start", c.CFUNCTYPE(c.c_int, p, c.POINTER(p), c.POINTER(Descr))),
                ("stop", c.CFUNCTYPE(c.c_int, p)), ("state", c.CFUNCTYPE(c.c_int, p, c.c_int, p)), ("finalize", c.CFUNCTYPE(c.c_int, p))]
t = Profiler.in_dll(c.CDLL(path), f"ncclProfiler_v{abi}")
context, mask = p(), c.c_int()
args = (c.byref(mask), b"world", 77) if abi == 4 else (77, c.byref(mask), b"world")
assert t.init(c.byref(context), *args, 1, 2, 0, None) == 0 and mask.value == 0xfff
def event(bit, states=(), **of):
    d = Descr(type=(1 << bit) & (0xff if abi == 4 else -1), parent=None, rank=0)
    for name, v in of.items():
        setattr(d.of, name, v)
    h = p()
    assert t.start(context, c.byref(h), c.byref(d)) == 0 and h.value
    for state, number in states:
        assert t.state(h, state, c.byref(c.c_uint64(number))) == 0
    assert t.stop(h) == 0
for i in range(3):
    event(1, coll=Coll(i, b"AllReduce", None, None, 1024, 0, b"ncclFloat32", 8, 4, b"RING", b"LL"))
event(2, p2p=P2p(b"Send", None, b"ncclInt8", 5, 1, 2))
event(3, op=ProxyOp(1, 0, 1, 16, 512, 1))
event(4, states=[(8, 0), (9, 4096)])
event(6, states=[(22, 1500)], ch=KernelCh(0, 1000))
if abi == 5:
    event(9)
d = Descr(type=0)
h = p(1)
assert t.start(context, c.byref(h), c.byref(d)) == 0 and not h.value and t.stop(None) == 0 and t.state(None, 9, None) == 0
if sys.argv[3] == "finalize":
    t.finalize(context)
"""


@pytest.mark.parametrize("abi", [4, 5])
@pytest.mark.parametrize("how", ["finalize", "exit"])
def test_it_counts_what_nccl_says(tmp_path, abi, how):
    plugin = tmp_path / "libnccl_plugin.so"
    subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", plugin,
                    SOURCE, "-lpthread"], check=True)
    (tmp_path / "out").mkdir()
    r = subprocess.run([sys.executable, "-c", HOST, plugin, str(abi), how], env={**os.environ, "PD_NCCL_OUT": str(tmp_path / "out")},
                       capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stderr
    told, = [json.loads(f.read_text()) for f in (tmp_path / "out").iterdir()]
    assert told["abi"] == abi and told["comms"] == [{"nodes": 1, "ranks": 2, "rank": 0}] and told["left_out"] == 0
    assert [tuple(op.values()) for op in told["ops"]] == [("AllReduce", "ncclFloat32", "RING", "LL", 1024, 8, -1, 3), ("Send", "ncclInt8", "", "", 5, 2, 1, 1)]
    of = told["events"]
    assert {k: v["starts"] for k, v in of.items() if v["starts"]} == {"coll": 3, "p2p": 1, "proxy_op": 1, "proxy_step": 1, "kernel_ch": 1,
                                                                       **({"coll_api": 1} if abi == 5 else {})}
    assert (of["proxy_op"]["steps"], of["proxy_step"]["bytes"], of["kernel_ch"]["gpu_ns"]) == (16, 4096, 500)
    assert all(v["starts"] == v["stops"] for v in of.values())
