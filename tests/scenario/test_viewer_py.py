# SPDX-License-Identifier: MIT. protond.viewer and protond.specs: Proton's numbers, and protonview's, with pandas and
# without.
import gzip
import importlib.util
import io
import json
import math
import pathlib
import subprocess
import sys
import types

import pytest

from test_python import PYTHONS, python_env

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent / "golden"
THREE = GOLDEN / "three_kernels.hatchet"
REAL = sorted((HERE.parent / "gpu/compare").glob("*.hatchet.gz"))
nan, inf = math.nan, math.inf

# The two modules alone, from their sources: they need nothing of the package.
package = sys.modules["viewer_alone"] = types.ModuleType("viewer_alone")
package.__path__ = [str(HERE.parents[1] / "libclient/python/protond")]
module = importlib.import_module("viewer_alone.viewer")
specs = importlib.import_module("viewer_alone.specs")


@pytest.fixture(params=["pandas", "plain"])
def viewer(request, monkeypatch):
    if request.param == "pandas":
        pytest.importorskip("pandas")
    else:
        monkeypatch.setitem(sys.modules, "pandas", None)  # an import of it fails
    module.mode = request.param
    return module


def near(values, rel=1e-6):
    return pytest.approx(list(values), rel=rel, nan_ok=True)


def node(name, *children, **metrics):
    metrics = {key.replace("_ns", " (ns)"): value for key, value in metrics.items()}
    return {"frame": {"name": name, "type": "function"}, "metrics": metrics, "children": list(children)}


def kernel(name, time_ns, device="0", kind="CUDA", **metrics):
    return node(name, time_ns=time_ns, count=1, device_id=device, device_type=kind, **metrics)


def root(*children, **metrics):
    return node("ROOT", *children, **(metrics or {"time_ns": 0, "count": 0}))


H200 = {"arch": "90", "bus_width": 6144, "clock_rate": 1980000, "memory_clock_rate": 3201000, "num_sms": 132}


def hatchet(tree, devices=None):
    """An open file."""
    return io.StringIO(json.dumps([tree, {"CUDA": {"0": H200}} if devices is None else devices]))


def save(path, tree, devices=None):
    path.write_text(hatchet(tree, devices).getvalue())
    return path


def names(gf):
    return gf.dataframe["name"].tolist()


def by_name(gf, column):
    return dict(zip(names(gf), gf.dataframe[column].tolist()))


def a_tree():
    """ROOT / (a / (k, n / (deep / k)), b / (k, other), alone)."""
    return root(node("b", kernel("k", 30), kernel("other", 4), cpu_ns=7),
                node("a", kernel("k", 10), node("n", node("deep", kernel("k", 100)))),
                kernel("alone", 1))


# --- files --------------------------------------------------------------------------------------

def test_what_read_gives(viewer, tmp_path):
    path = save(tmp_path / "x.hatchet", a_tree())
    gf, inclusive, exclusive, devices = viewer.read(path)
    assert inclusive == ["time (ns)", "count"] and devices == {"CUDA": {"0": H200}}
    assert exclusive == ["name", "cpu (ns)", "device_id", "device_type"]
    assert names(gf) == ["ROOT", "a", "k", "n", "deep", "k", "alone", "b", "k", "other"]
    assert gf.dataframe["time (ns)"].tolist() == near([0, nan, 10, nan, nan, 100, 1, nan, 30, 4])
    assert gf.dataframe["time (ns) (inc)"].tolist() == near([145, 110, 10, 100, 100, 100, 1, 34, 30, 4])
    assert by_name(gf, "cpu (ns)")["b"] == 7 and "cpu (ns) (inc)" not in gf.dataframe.columns
    assert gf.exc_metrics == inclusive and gf.inc_metrics == ["time (ns) (inc)", "count (inc)"]
    assert gf.show_metric_columns() == gf.exc_metrics + gf.inc_metrics
    assert type(gf.dataframe).__name__ == ("DataFrame" if viewer.mode == "pandas" else "Table")
    assert list(gf.dataframe.index) == list(gf.graph.traverse()) and len(gf.dataframe) == len(gf.graph) == 10
    assert [n.frame["name"] for n in gf.graph.traverse(order="post")][:4] == ["k", "k", "deep", "n"]
    assert [n.frame["name"] for n in gf.graph.roots] == ["ROOT"] and gf.graph.roots[0].children[0].parent is \
        gf.graph.roots[0]
    for mode in ("r", "rb"):
        with open(path, mode) as file:
            assert names(viewer.read(file)[0]) == names(gf)
    with open(path) as file:
        raw, *rest = viewer.get_raw_metrics(file)
    assert "time (ns) (inc)" not in raw.dataframe.columns and rest == [inclusive, exclusive, devices]


def test_what_is_left_out(viewer):
    gf, *_ = viewer.read(GOLDEN / "triton.hatchet")
    assert names(gf) == ["ROOT", "scope", "triton_kernel"]
    assert gf.dataframe["time (ns) (inc)"].tolist() == [1664] * 3
    gf, *_ = viewer.read(hatchet(root(
        node("empty", node("emptier")), node("__proton_launch_metadata:foo", kernel("gone", 5)), kernel("k", 1),
        node("timed", node("__proton_launch_metadata", kernel("gone", 5)), cpu_ns=3),
        node("untimed", node("__proton_launch_metadata", kernel("gone", 5))),
        node("__proton_launch_metadata_of_mine", kernel("here", 2)))))
    assert names(gf) == ["ROOT", "__proton_launch_metadata_of_mine", "here", "k", "timed"]


def test_files_that_are_none(viewer, tmp_path):
    for text in ("{}", "[]", "[{}]", "3", '{"traceEvents": []}'):
        with pytest.raises(ValueError, match="not a .hatchet file"):
            viewer.read(io.StringIO(text))
    with pytest.raises(ValueError):
        viewer.read(io.BytesIO(b""))
    with pytest.raises(AssertionError, match="No metrics found"):
        viewer.read(hatchet(node("ROOT"), {}))
    with pytest.raises(FileNotFoundError):
        viewer.read(tmp_path / "none.hatchet")


def test_msgpack(viewer, tmp_path, monkeypatch):
    """The smallest file that Proton writes. The package may be missing here: a stand-in knows these bytes."""
    packed = (b"\x92\x83\xa5frame\x82\xa4name\xa4ROOT\xa4type\xa8function\xa7metrics\x82\xa9time (ns)\x00"
              b"\xa5count\x00\xa8children\x91\x83\xa5frame\x82\xa4name\xa1k\xa4type\xa8function\xa7metrics\x84"
              b"\xa9time (ns)\xcd\x06\x80\xa5count\x01\xa9device_id\xa10\xabdevice_type\xa4CUDA\xa8children\x90\x80")
    path = tmp_path / "x.hatchet_msgpack"
    path.write_bytes(packed)
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(ImportError, match="hatchet_msgpack.*pip install msgpack"):
        viewer.read(path)
    stand_in = types.ModuleType("msgpack")

    def unpackb(data, raw, strict_map_key):
        assert data == packed and raw is False and strict_map_key is False
        return [root(kernel("k", 1664)), {}]
    stand_in.unpackb = unpackb
    monkeypatch.setitem(sys.modules, "msgpack", stand_in)
    gf, *_ = viewer.read(path)
    assert by_name(gf, "time (ns) (inc)") == {"ROOT": 1664, "k": 1664}
    monkeypatch.delitem(sys.modules, "msgpack")
    if importlib.util.find_spec("msgpack"):
        assert by_name(viewer.read(path)[0], "time (ns) (inc)") == {"ROOT": 1664, "k": 1664}


# --- metrics ------------------------------------------------------------------------------------

@pytest.mark.parametrize("metric, values", [
    ("util", [nan, 0.247044, 0.147830, 0.118451]),
    ("byte/s", [1.953125e11, 4.8828125e11, 4.8828125e10, 4.8828125e10]),
    ("gbyte/s", [195.3125, 488.28125, 48.828125, 48.828125]),
    ("tbyte/s", [0.1953125, 0.48828125, 0.048828125, 0.048828125]),
    ("flop8/s", [3.41796875e14, 4.8828125e14, 4.8828125e13, 4.8828125e14]),
    ("gflop8/s", [341796.875, 488281.25, 48828.125, 488281.25]),
    ("tflop8/s", [341.796875, 488.28125, 48.828125, 488.28125]),
    ("time/s", [0.0006144, 0.0002048, 0.0002048, 0.0002048]),
    ("time/ms", [0.6144, 0.2048, 0.2048, 0.2048]),
    ("time/us", [614.4, 204.8, 204.8, 204.8]),
    ("time/ns", [614400, 204800, 204800, 204800]),
    ("avg_time/ns", [51200, 20480, 204800, 204800]),
    ("avg_time/ms", [0.0512, 0.02048, 0.2048, 0.2048]),
    ("time/%", [100, 100 / 3, 100 / 3, 100 / 3]),
    ("Time", [614400, 204800, 204800, 204800]),
])
def test_golden_numbers(viewer, metric, values):
    gf, derived = viewer.parse([metric], THREE)
    column = {"util": "util", "Time": "time (ns) (inc)"}.get(metric, f"{metric} (inc)")
    assert derived == [column] and column in (gf.exc_metrics if metric == "util" else gf.inc_metrics)
    assert gf.dataframe[column].tolist() == near(values, rel=5e-6)


def hip_file(tmp_path):
    """Of each architecture one kernel: (flops8, bytes, CUs, kHz)."""
    devices = {"gfx90a": (1e10, 1e7, 104, 1700000), "gfx942": (1e11, 1.025e8, 304, 2100000),
               "gfx950": (1.092e12, 1e9, 256, 2400000)}
    kernels, known = [], {}
    for i, (arch, (flops, moved, units, clock)) in enumerate(devices.items()):
        kernels.append(kernel(arch, 1000000, str(i), "HIP", flops8=flops, bytes=moved))
        known[str(i)] = {**H200, "arch": arch, "num_sms": units, "clock_rate": clock}
    return save(tmp_path / "hip.hatchet", root(*kernels), {"HIP": known})


def test_least_times(viewer, tmp_path):
    gf, _, _, devices = viewer.read(THREE)
    flops = viewer.get_min_time_flops(gf.dataframe, devices)
    assert flops["min_time"].tolist() == pytest.approx([0, 5e-5, 2.5e-5, 2.5e-5], abs=1e-5)
    assert list(flops.index) == list(gf.graph.nodes) and list(flops.columns) == ["min_time"]
    moved = viewer.get_min_time_bytes(gf.dataframe, devices)["min_time"].tolist()
    assert moved[:3] == near([0, 2.48584e-05, 9.91969e-06])
    gf, _, _, devices = viewer.read(hip_file(tmp_path))
    assert viewer.get_min_time_flops(gf.dataframe, devices)["min_time"].tolist()[1:] == pytest.approx(
        [5.5e-5, 3.8e-5, 2.17e-4], abs=1e-6)
    assert viewer.get_min_time_bytes(gf.dataframe, devices)["min_time"].tolist()[1:] == pytest.approx(
        [3.125e-06, 1.93378e-05, 1.25e-4], abs=1e-7)


def test_util(viewer):
    """Of a node's own work; no bytes, or no flops, are none; without a known device there is none."""
    second = specs.max_flops("CUDA", "90", 16, 132, 1980000)
    moved = specs.max_bps("CUDA", "90", 6144, 3201000)
    s = 10 ** 9
    tree = root(kernel("half", s, flops16=second / 2), kernel("both", s, flops16=second / 4, flops32=second / 4),
                kernel("bytes", s, bytes=moved / 8), kernel("neither", s), kernel("lost", s, "1", bytes=1),
                kernel("other kind", s, "0", "HIP", bytes=1), kernel("untimed", 0, bytes=1),
                node("scope", kernel("inner", s), flops16=second))
    gf, _ = viewer.parse(["util"], hatchet(tree))
    assert by_name(gf, "util") == pytest.approx({
        "ROOT": nan, "half": 0.5, "both": 0.75, "bytes": 0.125, "neither": 0, "lost": nan, "other kind": nan,
        "untimed": inf, "scope": nan, "inner": 0}, nan_ok=True)
    for work in ({"flops8": second / 5}, {"bytes": moved / 10}):
        gf, _ = viewer.parse(["util"], hatchet(root(kernel("k", 10 ** 9, **work))))
        assert gf.dataframe["util"].tolist() == near([nan, 0.1])
    with pytest.raises(RuntimeError, match="util is not found"):
        viewer.parse(["util"], hatchet(root(kernel("k", 1, flops=5))))
    old = {"CUDA": {"0": {**H200, "arch": "75"}}}
    with pytest.raises(ValueError, match="Unsupported architecture: 75"):
        viewer.parse(["util"], hatchet(root(kernel("k", 1, flops8=5)), old))
    gf, _ = viewer.parse(["util"], hatchet(root(kernel("k", 10 ** 9, bytes=moved)), old))
    assert gf.dataframe["util"].tolist() == near([nan, 1])


def test_exclusive_metrics(viewer):
    tree = root(node("s", kernel("k", 100, loss=1.5), **{"cpu_time (ns)": 3000, "loss": 0.5}),
                node("t", kernel("k", 100, loss=6.0), **{"cpu_time (ns)": 1000, "tag": "text", "vec": [1, 2]}))
    gf, derived = viewer.parse(["cpu_time/us", "avg_cpu_time/us", "loss/%", "loss"], hatchet(tree))
    assert derived == ["cpu_time/us (inc)", "avg_cpu_time/us (inc)", "loss/%", "loss"]
    assert gf.dataframe["cpu_time/us (inc)"].tolist() == near([nan, 3, nan, 1, nan])
    assert gf.dataframe["avg_cpu_time/us (inc)"].tolist() == near([nan, 3, nan, 1, nan])
    assert gf.dataframe["loss/%"].tolist() == near([nan, 6.25, 18.75, nan, 75])
    assert gf.dataframe["loss"].tolist() == near([nan, .5, 1.5, nan, 6])
    assert by_name(gf, "tag")["t"] == "text" and by_name(gf, "vec")["t"] == [1, 2]
    assert "loss" in gf.exc_metrics and "cpu_time/us (inc)" in gf.inc_metrics


def test_what_divides_by_nothing(viewer):
    tree = root(kernel("zero", 0, bytes=8), kernel("nothing", 0, bytes=0), kernel("minus", 0, bytes=-8),
                kernel("k", 0))
    gf, _ = viewer.parse(["byte/s", "time/%"], hatchet(tree))
    assert by_name(gf, "byte/s (inc)") == pytest.approx(
        {"ROOT": nan, "zero": inf, "nothing": nan, "minus": -inf, "k": nan}, nan_ok=True)
    assert gf.dataframe["time/% (inc)"].tolist() == near([nan] * 5)


def test_metrics_that_are_not_there(viewer):
    gf, inclusive, exclusive, devices = viewer.read(THREE)
    for metric in ("flop16/s", "cpu_time/ms", "copies", "copies/%", "tim"):
        with pytest.raises(RuntimeError, match="is not found"):
            viewer.derive_metrics(gf, [metric], inclusive, exclusive, devices)
    for metric, unit in (("count/x", "x"), ("time/m", "m"), ("Time/ms", "ms")):
        with pytest.raises(ValueError, match=f"Unsupported unit {unit}"):
            viewer.derive_metrics(gf, [metric], inclusive, exclusive, devices)
    with pytest.raises(ValueError, match="no unit of time"):
        viewer.parse(["time/ms"], hatchet(root(node("k", time=5), time=0)))
    assert viewer.match_available_metrics(["Bytes", "device_ID", "none"], inclusive, exclusive) == [
        "bytes (inc)", "device_id"]


def test_tables_that_others_import(viewer):
    assert viewer.time_factor_dict == ("time", {"time/s": 1, "time/ms": 1e-3, "time/us": 1e-6, "time/ns": 1e-9})
    assert viewer.avg_time_factor_dict.factor["avg_time/us"] == 1e-6
    assert viewer.cpu_time_factor_dict.name == "cpu_time" and "cpu_time/s" in viewer.cpu_time_factor_dict.factor
    assert list(viewer.avg_cpu_time_factor_dict.factor)[0] == "avg_cpu_time/s"
    assert viewer.bytes_factor_dict == ("bytes", {"byte/s": 1, "gbyte/s": 1e9, "tbyte/s": 1e12})
    assert viewer.default_flop_factor_dict == {"flop/s": 1, "gflop/s": 1e9, "tflop/s": 1e12}
    assert viewer.derivable_metrics["tflop16/s"] == ("flops16", {"flop16/s": 1, "gflop16/s": 1e9, "tflop16/s": 1e12})
    assert len(viewer.derivable_metrics) == 18 and viewer.derivable_metrics["gflop/s"].name == "flops"


def test_specs():
    assert specs.max_flops("CUDA", "90", 16, 132, 1980000) == pytest.approx(988.2e12, rel=1e-4)
    assert specs.max_flops("CUDA", "90", 8, 132, 1980000) == pytest.approx(1976.5e12, rel=1e-4)
    assert specs.max_flops("CUDA", "80", 16, 108, 1410000) == 312e12
    assert specs.max_flops("CUDA", "89", 32, 128, 1) == pytest.approx(330.3e12 / 4)
    assert specs.max_flops("CUDA", "100", 8, 148, 1965000) == pytest.approx(148 * 16384 * 1.965e9)
    assert specs.max_flops("HIP", "gfx90a", 8, 100, 1000) == 1024e8
    assert specs.max_bps("CUDA", "90", 6144, 3201000) == pytest.approx(4.916736e12)
    assert specs.max_bps("CUDA", "75", 256, 1000) == 6.4e7
    assert [specs.max_bps("HIP", arch, 1, 1) for arch in ("gfx90a", "gfx942", "gfx950")] == [3.2e12, 5.3e12, 8e12]
    for call in (lambda: specs.max_flops("CUDA", "75", 8, 1, 1), lambda: specs.max_flops("HIP", "gfx1100", 8, 1, 1),
                 lambda: specs.max_bps("HIP", "gfx1100", 1, 1)):
        with pytest.raises(ValueError, match="Unsupported architecture"):
            call()
    for call in (lambda: specs.max_flops("XPU", "90", 8, 1, 1), lambda: specs.max_bps("XPU", "90", 1, 1)):
        with pytest.raises(ValueError, match="Unsupported device type: XPU"):
            call()


# --- filters ------------------------------------------------------------------------------------

def paths(gf):
    found = []
    for n in gf.graph.traverse():
        path = []
        while n is not None:
            path.insert(0, n.frame["name"])
            n = n.parent
        found.append("/".join(path).replace("ROOT/", ""))
    return found


ABOVE_K = ["ROOT", "a", "a/k", "a/n", "a/n/deep", "a/n/deep/k", "b", "b/k"]
QUERIES = {
    'MATCH ("*")->(".", p) WHERE p."name" =~ "k"': ABOVE_K,
    "\n MATCH ('*')->('.', p)->(\"*\")\nWHERE p.'name' =~ 'n|alo'\n": [
        "ROOT", "a", "a/n", "a/n/deep", "a/n/deep/k", "alone"],
    'MATCH (".", p)->("*") WHERE p."name" =~ "n"': ["n", "n/deep", "n/deep/k"],
    "MATCH (p) WHERE p.'name' = 'b'": ["b"],
    "MATCH ('*', c) WHERE c IS LEAF": ["alone", "k", "other"],
    "MATCH ('*', c) WHERE c.'name' =~ '.*e' AND c IS LEAF": ["alone", "other"],
    'MATCH (p)->(q) WHERE q IS LEAF AND p."name" = "b"': ["b", "b/k", "b/other"],
    'MATCH (p)->(2)->(q) WHERE q IS LEAF': ["a", "a/n", "a/n/deep", "a/n/deep/k"],
    'MATCH (p)->("+")->(q) WHERE p."name" = "a" AND q IS LEAF': ["a", "a/n", "a/n/deep", "a/n/deep/k"],
    'MATCH (".", p) WHERE p."time (ns) (inc)" >= 100 AND p IS NOT LEAF': ["ROOT", "a", "a/n", "a/n/deep"],
    "MATCH (p) WHERE p.'time (ns)' < 5 AND p.'count' > 0": ["alone", "other"],
    "MATCH (p) WHERE p.'time (ns)' = 4": ["other"],
    "MATCH (p) WHERE p.'name' =~ 'o\\\\.?ther'": ["other"],
    "MATCH (p) WHERE p.'depth' <= 0": ["ROOT"],
}


@pytest.mark.parametrize("query", QUERIES)
def test_string_queries(viewer, query):
    gf, *_ = viewer.read(hatchet(a_tree()))
    assert paths(gf.filter(query)) == QUERIES[query]


@pytest.mark.parametrize("query", [
    "", "MATCH", "MATCH ()", "MATCH ('*'", "(p)", "MATCH ('*')->", "MATCH (p) WHERE", "MATCH (p) WHERE p",
    "MATCH (p) WHERE q IS LEAF", "MATCH (p) WHERE p IS LEAF AND", "MATCH (p) WHERE p IS LEAF OR p IS LEAF",
    "MATCH (p) WHERE p.'name' =~ x", "MATCH (p) WHERE p.'name' < 'x'", "MATCH (p) WHERE p.'count' =~ 3",
    "MATCH ('?', p)", "MATCH (p) nonsense", "MATCH ('*') ('.')", "MATCH (x, y)"])
def test_queries_that_cannot_be_read(viewer, query):
    gf, *_ = viewer.read(hatchet(a_tree()))
    with pytest.raises(ValueError) as e:
        gf.filter(query)
    assert not isinstance(e.value, viewer.EmptyFilter)


def test_list_queries(viewer):
    gf, *_ = viewer.read(hatchet(a_tree()))
    assert paths(gf.filter(["*", {"name": "k"}])) == ABOVE_K
    assert paths(gf.filter(["*", {"name": "al.*"}])) == ["ROOT", "alone"]
    assert paths(gf.filter(["*", {"time (ns) (inc)": ">= 34"}])) == [
        "ROOT", "a", "a/n", "a/n/deep", "a/n/deep/k", "b"]
    assert paths(gf.filter([{"name": "a"}, 2, {"name": "k|other"}])) == ["a", "a/n", "a/n/deep", "a/n/deep/k"]
    assert paths(gf.filter([("+", {"time (ns)": 30})])) == ["k"]
    assert paths(gf.filter([{"name": "al|b"}])) == ["b"]
    assert paths(gf.filter([{"depth": 1, "name": "[ab]"}])) == ["a", "b"]
    for nothing in (["*", {"name": "al"}], [{"none": 3}], [{"none": "x"}], [{"name": 3}]):
        with pytest.raises(viewer.EmptyFilter):
            gf.filter(nothing)
    with pytest.raises(ValueError, match="use '.'"):
        gf.filter(["?"])
    with pytest.raises(TypeError):
        gf.filter(3)


def test_callable_filters(viewer):
    gf, *_ = viewer.read(hatchet(a_tree()))
    found = gf.filter(lambda row: row["time (ns)"] > 5 or row["name"] == "b")
    assert paths(found) == ["b", "b/k", "k"]
    assert paths(gf.filter(lambda row: not row["node"].children)) == ["alone", "k", "other"]
    kept = gf.filter(lambda row: row["name"] == "k", squash=False)
    assert kept.graph is gf.graph and names(kept) == ["k"] * 3
    assert names(kept.squash()) == ["k"]


def test_squash(viewer):
    """What gets the same path becomes one node; own values are added up, and sums made anew."""
    gf, *_ = viewer.read(hatchet(a_tree()))
    found = gf.filter(lambda row: row["name"] in ("ROOT", "k", "other"))
    assert paths(found) == ["ROOT", "k", "other"] and found.dataframe["time (ns)"].tolist() == [0, 140, 4]
    assert found.dataframe["time (ns) (inc)"].tolist() == [144, 140, 4]
    assert found.dataframe["count"].tolist() == [0, 3, 1] and by_name(found, "device_id")["k"] == "0"
    same = gf.filter(lambda row: row["name"] in ("ROOT", "k"), update_inc_cols=False)
    assert same.dataframe["time (ns) (inc)"].tolist() == [145, 140]
    assert gf.dataframe["time (ns) (inc)"].tolist()[0] == 145, "a filter leaves its object alone"
    copy = gf.copy()
    copy.dataframe["name"] = ["x"] * len(copy.dataframe)
    copy.inc_metrics.clear()
    assert names(gf)[0] == "ROOT" and gf.inc_metrics and copy.graph is gf.graph


def test_filter_frames(viewer):
    def left(**how):
        gf, derived = viewer.parse(["time/ns"], hatchet(a_tree()), **how)
        return paths(gf)
    untimed = hatchet(root(kernel("k", 5), node("s", cpu_ns=1)))
    assert paths(viewer.parse(["time/ns"], untimed, threshold=0.0)[0]) == ["ROOT", "k", "s"]
    whole = left()
    assert len(whole) == 10 and left(threshold=0) == left(include="", exclude="") == whole
    assert left(include="dee") == ["ROOT", "a", "a/n", "a/n/deep", "a/n/deep/k"]
    with pytest.raises(viewer.EmptyFilter):
        left(include="ee")
    assert left(exclude="a$|k") == ["ROOT", "alone", "b", "b/other"]
    assert left(threshold=30) == ["ROOT", "a", "a/n", "a/n/deep", "a/n/deep/k", "b", "b/k"]
    assert left(include="b", exclude="k") == ["ROOT", "b", "b/other"]
    with pytest.raises(viewer.EmptyFilter):
        left(exclude="ROOT")
    gf, derived = viewer.parse(["time/ns", "time"], hatchet(a_tree()), include="b")
    assert by_name(gf, "time/ns (inc)")["ROOT"] == 145, "a derived value is the one of before the filter"
    assert by_name(gf, "time (ns) (inc)")["ROOT"] == 34, "a sum is that of what is left"


def test_as_triton_kernels_uses_it(viewer, tmp_path):
    """Its parse_profile(): the calls and the query strings."""
    path = save(tmp_path / "x.hatchet", root(
        node("matmul_a", kernel("matmul_1", 10, flops8=5, flops16=6, bytes=7), kernel("copy", 100)),
        kernel("matmul_1", 20, flops16=1, bytes=2), kernel("add", 1000)))
    gf, _, _, _ = viewer.read(path)
    useful = gf.filter("MATCH ('*', c) WHERE c.'name' =~ '.*matmul.*' AND c IS LEAF").dataframe
    assert int(useful["bytes"].sum()) == 9
    assert int(sum(useful[[c for c in ["flops8", "flops16", "flops32"] if c in useful.columns]].sum())) == 12
    assert gf.filter("MATCH ('*', c) WHERE c IS LEAF").dataframe["time (ns)"].sum() == 1130


# --- text ---------------------------------------------------------------------------------------

def test_print_tree(viewer, capsys):
    viewer.print_tree(*viewer.parse(["util", "byte/s"], THREE))
    assert capsys.readouterr().out == """nan 195312500000.000 ROOT
├─ 0.247 488281250000.000 foo0
├─ 0.148 48828125000.000 foo1
└─ 0.118 48828125000.000 foo2

"""
    viewer.print_tree(*viewer.parse(["flop8/s", "time/ms"], THREE), print_sorted=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "341796875000000.000 0.614 ROOT" and lines[4] == ""
    assert lines[5:] == (GOLDEN / "sorted_three.txt").read_text().splitlines()[5:], "this list is protonview's, too"
    viewer.print_tree(*viewer.parse(["util"], THREE), print_sorted=True)
    assert capsys.readouterr().out.splitlines()[5:] == (GOLDEN / "sorted_util.txt").read_text().splitlines()[5:]
    viewer.print_tree(*viewer.parse(["time/ns"], hatchet(a_tree())), depth=3)
    assert capsys.readouterr().out == """145.000 ROOT
├─ 110.000 a
│  ├─ 10.000 k
│  └─ 100.000 n
├─ 1.000 alone
└─ 34.000 b
   ├─ 30.000 k
   └─ 4.000 other

"""
    long = "x" * 120
    gf, metrics = viewer.parse(["count"], hatchet(root(kernel(long, 1), node("s", cpu_ns=1), count=0)))
    viewer.print_tree(gf, metrics, print_sorted=True)
    assert capsys.readouterr().out == (
        f"1.000 ROOT\n├─ nan s\n└─ 1.000 {long}\n\nSorted kernels by metric count (inc)\n"
        f"{'x' * 100}...   1.0\n{'s':105} nan\n")
    assert gf.tree().splitlines()[-1] == f"└─ 1.000 {'x' * 18}...{'x' * 18}"
    assert gf.tree("count", precision=0, depth=1) == "0 ROOT\n" and gf.tree(depth=0) == ""
    with pytest.raises(KeyError):
        gf.tree("none")


def test_overflow_is_said(viewer, capsys):
    viewer.print_tree(*viewer.parse(["bytes"], hatchet(root(kernel("k", 1, bytes=-5), bytes=0))))
    assert "Negative byte values" in capsys.readouterr().out
    viewer.print_tree(*viewer.parse(["bytes"], hatchet(root(kernel("k", 1, bytes=5), node("s", cpu_ns=1), bytes=0))))
    assert "Warning" not in capsys.readouterr().out


@pytest.mark.parametrize("format, first, second", [
    (None, "/home/user/test.py:1@foo", "at::k<a/b>"), ("full", "/home/user/test.py:1@foo", "at::k<a/b>"),
    ("file_function_line", "test.py:1@foo", "b>"), ("function_line", "1@foo", "k<a/b>"),
    ("file_function", "test.py@foo", "at::k<a/b>")])
def test_format_frames(viewer, capsys, format, first, second):
    tree = root(kernel("/home/user/test.py:1@foo", 1), kernel("at::k<a/b>", 2))
    gf, metrics = viewer.parse(["time/ns"], hatchet(tree))
    assert names(viewer.format_frames(gf.copy(), format)) == ["ROOT", first, second]
    viewer.print_tree(gf, metrics, format=format)
    assert capsys.readouterr().out == f"3.000 ROOT\n├─ 1.000 {first}\n└─ 2.000 {second}\n\n"
    with pytest.raises(ValueError, match="use one of full"):
        viewer.format_frames(gf, "short")


# --- differences --------------------------------------------------------------------------------

def test_numbers_meet_though_root_lacks_them(viewer):
    """Without ROOT's hint, as of Triton 3.7, bytes are exclusive: leaves of one name keep them all."""
    tree = root(node("a", kernel("k", 1, bytes=5)), kernel("k", 2, bytes=7), node("b", cpu_ns=1))
    gf = viewer.read(hatchet(tree))[0].filter("MATCH ('*', c) WHERE c IS LEAF")
    assert by_name(gf, "bytes") == pytest.approx({"k": 12, "b": nan}, nan_ok=True)


def test_diff(viewer, tmp_path):
    before = root(node("s", kernel("k", 10), kernel("gone", 4)), kernel("util", 5, bytes=1))
    before = save(tmp_path / "before", before)
    after = hatchet(root(node("s", kernel("k", 13), kernel("new", 2)), kernel("util", 5, bytes=4)))
    gf, derived = viewer.parse(["time/ns", "byte/s"], after)
    diff = viewer.apply_diff_profile(gf, derived, before, ["time/ns", "byte/s"], None, None, None)
    assert dict(zip(paths(diff), diff.dataframe["time/ns (inc)"].tolist())) == {
        "ROOT": 1, "s": 1, "s/gone": -4, "s/k": 3, "s/new": 2, "util": 0}
    assert by_name(diff, "byte/s (inc)")["util"] == pytest.approx(3 / 5e-9) and by_name(diff, "_missing_node") == {
        "ROOT": 0, "s": 0, "gone": 2, "k": 0, "new": 1, "util": 0}
    assert math.isnan(by_name(diff, "byte/s (inc)")["k"])
    assert diff.inc_metrics == derived and diff.exc_metrics == []
    assert diff.tree("time/ns (inc)") == ("1.000 ROOT\n├─ 1.000 s\n│  ├─ -4.000 gone ▶ \n│  ├─ 3.000 k\n"
                                          "│  └─ 2.000 new ◀ \n└─ 0.000 util\n")
    one, *_ = viewer.read(before)
    assert set((one - one).dataframe["time (ns)"].dropna() if viewer.mode == "pandas" else
               filter(lambda v: v == v, (one - one).dataframe["time (ns)"])) == {0}
    assert "_missing_node" not in (one - one).dataframe.columns
    part = viewer.filter_frames(one, exclude="gone")
    assert by_name(part - one, "_missing_node")["gone"] == 2 and by_name(one - part, "_missing_node")["gone"] == 1
    kept = viewer.apply_diff_profile(*viewer.parse(["time/ns"], before, "s"), before, ["time/ns"], "s", None, None)
    assert paths(kept) == ["ROOT", "s", "s/gone", "s/k"]


def test_a_table(viewer):
    """The part of a DataFrame's surface that a Table has."""
    gf, *_ = viewer.read(THREE)
    frame = gf.dataframe
    assert list(frame["count"]) == [0, 10, 1, 1] and frame["count"].sum() == 12 and len(frame) == 4
    assert list(frame[["count", "bytes"]].sum()) == [12, 120000000] and list(frame[["bytes"]].columns) == ["bytes"]
    assert viewer.read(hatchet(a_tree()))[0].dataframe["time (ns)"].sum() == 145, "what is NaN is passed over"
    frame["new"] = [1, 2, 3, 4]
    assert "new" in frame.columns and [row["new"] for _, row in frame.iterrows()] == [1, 2, 3, 4]
    assert [n.frame["name"] for n, _ in frame.iterrows()] == ["ROOT", "foo0", "foo1", "foo2"]
    with pytest.raises(ValueError):
        frame["new"] = [1]
    with pytest.raises(KeyError):
        frame["none"]
    assert sorted(reversed(list(frame.index))) == list(frame.index) and "foo0" in repr(list(frame.index)[1])
    if viewer.mode == "pandas":
        assert frame.loc[gf.graph.roots[0], "count (inc)"] == 12
        assert frame.sort_values(by="count", ascending=False).iloc[0]["name"] == "foo0"


# --- against protonview -------------------------------------------------------------------------

def protonview(world, path, metrics, *flags):
    """{path: [value of each metric]}."""
    got = json.loads(world.view("tree", path, "-m", ",".join(metrics), "--json", *flags).stdout)["data"]
    columns = [column["name"] for column in got["columns"]]
    at, of = {-1: ""}, {}
    for row in got["rows"]:
        row = dict(zip(columns, row))
        at[row["id"]] = f"{at[row['parent']]}/{row['name']}"
        of[at[row["id"]]] = [nan if value is None else value for value in list(row.values())[6:]]
    return of


def ours(gf, derived):
    at = {None: ""}
    for n in gf.graph.nodes:
        at[n] = f"{at[n.parent]}/{n.frame['name']}"
    columns = [gf.dataframe[name].tolist() for name in derived]
    return {at[n]: list(values) for n, *values in zip(gf.dataframe.index, *columns)}


def agree(mine, its):
    assert mine.keys() == its.keys() and len(mine) > 2
    for path, values in mine.items():
        assert values == pytest.approx(its[path], rel=1e-9, nan_ok=True), path


def worked(tree, depth=0):
    """Gives each kernel work, in proportion to its time, at widths and with bytes that some lack."""
    metrics = tree["metrics"]
    if "device_id" in metrics and "time (ns)" in metrics:
        metrics["flops16"] = metrics["time (ns)"] * (100 + depth) * 1000
        if metrics["count"] % 2 == 0:
            metrics["bytes"] = metrics["time (ns)"] * 3000
        if metrics["count"] % 3 == 0:
            metrics["flops32"] = metrics["time (ns)"] * 50000
    for child in tree["children"]:
        worked(child, depth + 1)


def test_selves_of_scopes_as_protonview_has_them(viewer, world):
    path = GOLDEN / "scopes.hatchet"
    metrics = ["self_time/ms", "self_time/%", "self_cpu_time", "self_cpu_time/s"]
    mine = ours(*viewer.parse(metrics, path))
    agree(mine, protonview(world, path, metrics))
    assert any(values[0] > 0 for values in mine.values())
    with pytest.raises(ValueError, match="Unsupported unit"):
        viewer.parse(["self_time/h"], path)


@pytest.mark.parametrize("source", REAL, ids=lambda path: path.name.partition(".")[0])
def test_as_protonview_does(viewer, world, tmp_path, source):
    """Files of an H200, with work added."""
    database = json.loads(gzip.decompress(source.read_bytes()))
    worked(database[0])
    database[0]["metrics"].update(flops16=0, bytes=0)
    path = save(tmp_path / "x.hatchet", *database)
    metrics = ["time/ms", "util", "avg_time/us", "tflop16/s", "gbyte/s", "time/%", "flops32/%", "count"]
    metrics += ["cpu_time/ms", "copy_bytes/%", "avg_cpu_time/us"] if "cpu_time" in path.read_text() else []
    selves = ["self_time/ms", "self_gpu_time", "self_time/%"] + ["self_cpu_time/us", "self_cpu_time/%"] * ("cpu_time" in path.read_text())
    agree(ours(*viewer.parse(selves, path)), protonview(world, path, selves))
    agree(ours(*viewer.parse(metrics, path)), protonview(world, path, metrics))
    for flag, how in (("-i", {"include": "forward|_ZN2at6native1"}), ("-e", {"exclude": ".*layer|nvjet_sm90_tst_1"}),
                      ("-t", {"threshold": 0.5})):
        got = ours(*viewer.parse(metrics[:2], path, **how))
        agree(got, protonview(world, path, metrics[:2], flag, *how.values()))
        assert len(got) < len(ours(*viewer.parse(metrics[:2], path)))
    other = save(tmp_path / "y.hatchet", *json.loads(gzip.decompress(REAL[0].read_bytes())))
    gf, derived = viewer.parse(["time/ms"], path)
    agree(ours(viewer.apply_diff_profile(gf, derived, other, ["time/ms"], None, None, None), derived),
          protonview(world, path, ["time/ms"], "--diff-profile", other))


def test_time_of_scopes(viewer, world, tmp_path):
    """In a file without GPU work, time is that of the scopes, averages are of calls, and both viewers say the same."""
    tree = root(node("train", node("step", node("forward", **{"cpu_time (ns)": 30, "calls": 3}), calls=2,
                                   **{"cpu_time (ns)": 80}), node("untimed", node("io", calls=1, **{"cpu_time (ns)": 9})),
                     calls=1, **{"cpu_time (ns)": 100}),
                node("group", node("part", calls=4, **{"cpu_time (ns)": 60})), flops=0)
    tree["children"][0]["children"][0]["metrics"]["flops"] = 16
    path = save(tmp_path / "x.hatchet", tree)
    metrics = ["time/ns", "time/%", "avg_time/ns", "avg_cpu_time/ns", "time/us", "gflop/s", "cpu_time/%"]
    gf, derived = viewer.parse(metrics, path)
    agree(ours(gf, derived), protonview(world, path, metrics))
    assert by_name(gf, "time/ns (inc)") == {"ROOT": 160, "train": 100, "step": 80, "forward": 30, "untimed": 9, "io": 9,
                                            "group": 60, "part": 60}
    assert by_name(gf, "time/% (inc)")["group"] == pytest.approx(37.5) and by_name(gf, "avg_time/ns (inc)")["step"] == 40
    assert by_name(gf, "gflop/s (inc)")["step"] == pytest.approx(0.2)
    got, _ = viewer.parse(["time/ns"], path, threshold=60)
    assert names(got) == ["ROOT", "group", "part", "train", "step"]
    for metric in ("util", "count"):
        with pytest.raises(RuntimeError, match="is not found"):
            viewer.parse([metric], path)


def test_peaks_are_protonviews(viewer, world, tmp_path):
    devices = {type_: {str(i): {**H200, "arch": arch} for i, arch in enumerate(archs)}
               for type_, archs in (("CUDA", ("80", "89", "90", "100")), ("HIP", ("gfx90a", "gfx942", "gfx950")))}
    path = save(tmp_path / "x.hatchet", root(*(
        kernel(f"{device['arch']} {what}", 1000, i, type_, **{what: 10 ** 9})
        for type_ in devices for i, device in devices[type_].items()
        for what in ("flops8", "flops64", "bytes"))), devices)
    got = ours(*viewer.parse(["util"], path))
    agree(got, protonview(world, path, ["util"]))
    assert sum(values[0] > 0 for values in got.values()) == 21


# --- the package --------------------------------------------------------------------------------

@pytest.mark.preload
@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
def test_in_the_package(world, python):
    """On every interpreter; `import` alone loads nothing that is slow."""
    r = subprocess.run([python, "-c", """
import sys
from protond import specs, viewer
assert not {"pandas", "numpy", "msgpack", "hatchet"} & set(sys.modules)
sys.modules["pandas"] = None
gf, metrics = viewer.parse(["util", "time/us"], sys.argv[1], threshold=0.12)
viewer.print_tree(gf, metrics)
viewer.print_tree(gf.filter("MATCH ('*', c) WHERE c IS LEAF"), metrics)
""", str(THREE)], capture_output=True, encoding="utf-8", env=python_env(world, PYTHONIOENCODING="utf-8"))
    assert (r.stderr, r.stdout) == ("", "nan 614.400 ROOT\n├─ 0.247 204.800 foo0\n└─ 0.148 204.800 foo1\n\n"
                                    "0.247 204.800 foo0\n0.148 204.800 foo1\n\n")


# --- as a command, and Proton's other names ---------------------------------------------------------

def test_remove_frames(viewer):
    """Of what data.get() gives, too; the argument stays as it is."""
    database = [root(node("b", node("empty", node("emptier"))), node("__proton_launch_metadata:k", kernel("k", 3)),
                     node("a", kernel("y", 2), kernel("x", 1))), {"CUDA": {}}]
    before = json.dumps(database)
    tree, devices = viewer.remove_frames(database)
    assert json.dumps(database) == before and devices == {"CUDA": {}}
    assert [c["frame"]["name"] for c in tree["children"]] == ["a"]
    assert [c["frame"]["name"] for c in tree["children"][0]["children"]] == ["y", "x"]
    gf, inclusive, _, _ = viewer.get_raw_metrics(database)
    assert names(gf) == ["ROOT", "a", "x", "y"] and inclusive == ["time (ns)", "count"]


def command(*words):
    code = f"import sys, types\np = sys.modules['protond'] = types.ModuleType('protond')\np.__path__ = {package.__path__!r}\n" \
        "from protond import viewer\nviewer.main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True)


def test_the_command(tmp_path):
    r = command("-l", THREE)
    assert r.stdout.splitlines()[:2] == ["Available inclusive metrics:", "- bytes"] and "- device_id" in r.stdout, r.stderr
    r = command("-m", "time/ns,flops,util", "--print-sorted", "-i", ".*foo1", THREE)
    assert r.returncode == 0 and "204800.000 0.148 foo1" in r.stdout and "foo0" not in r.stdout, r.stdout
    assert r.stderr.startswith("Warning: Metric flops is not found"), "what the file has is shown"
    r = command("-m", "time/ns", "-diff", THREE, THREE)
    assert r.returncode == 0 and "0.000 ROOT" in r.stdout
    for words, code, said in ((("-m", "flops", THREE), 1, "no metric of -m is in the file"), (("-l", tmp_path / "no"), 1, "No such file"),
                              (("-i", "a", "-e", "b", THREE), 2, "cannot be used together"), (("-m", "util/s", THREE), 1, "Unsupported unit")):
        r = command(*words)
        assert r.returncode == code and said in r.stderr and "Traceback" not in r.stderr, r.stderr


def test_specs_by_protons_names():
    assert specs.flops_by_device["CUDA"]["90"](8, num_sms=132, clock_rate=1980000) == specs.max_flops("CUDA", "90", 8, 132, 1980000)
    assert specs.flops_by_device["CUDA"]["80"](16) == 312e12
    assert specs.amd_fp8_flops_by_arch == {"gfx90a": 1024, "gfx942": 4096, "gfx950": 8192}
    assert specs.amd_bps_by_arch["gfx942"] == 5.3e12
