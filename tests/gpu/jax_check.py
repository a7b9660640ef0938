# SPDX-License-Identifier: MIT. jax_check.py: JAX's modules as scopes, and their time on the GPU, against JAX's own profiler.
"""jax_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed". The same program runs three times: first for the
caches of what tunes itself, under protond, and under jax.profiler, which needs CUPTI for itself."""
import gzip
import json
import pathlib
import sys

from judge import check, judge, started
from torch_room import CTL, room, sql, view

STEPS = 20
CODE = """
import contextlib, sys, jax, jax.numpy as jnp
@jax.jit
def step(w, x):
    loss, g = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * g, loss
@jax.jit
def score(w, x):
    return jnp.argmax(x @ w, axis=1)
w, x = jnp.full((1024, 1024), 0.01), jnp.ones((2048, 1024))
for f in (step, score): jax.block_until_ready(f(w, x))
with jax.profiler.trace(sys.argv[1]) if len(sys.argv) > 1 else contextlib.nullcontext():
    for i in range(%d):
        w, loss = step(w, x)
        jax.block_until_ready(score(w, x))
""" % STEPS


def program(env):
    file = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "program.py"
    file.write_text(CODE)
    return [sys.executable, str(file)]


def theirs():
    """{module: (kernels, ns)} of jax.profiler's events."""
    env = room()
    out = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "trace"
    r = started([*program(env), str(out)], env, timeout=200)
    files = list(out.rglob("*.trace.json.gz"))
    if not check("jax.profiler: it ran", r.returncode == 0 and len(files) == 1, r.stderr[-600:]):
        return {}
    got = {}
    for e in json.loads(gzip.decompress(files[0].read_bytes()))["traceEvents"]:
        module = e.get("args", {}).get("hlo_module") if e.get("ph") == "X" else None
        if module and "correlation_id" in e["args"]:
            n, ns = got.get(module, (0, 0))
            got[module] = n + 1, ns + e["dur"] * 1e3
    return got


def modules():
    env = room()
    started(program(env), env, timeout=200)
    r = started([CTL, "run", "-n", "x", "-d", "both", "--", *program(env)], env, timeout=200)
    if not check("it ran", r.returncode == 0, r.stderr[-600:]):
        return
    other = theirs()
    for module in ("jit_step", "jit_score"):
        n, ns = sql(env, f"select count(*), coalesce(sum(dur_ns), 0) from kernels where path like '%{module}%'")[0]
        calls = sql(env, f"select coalesce(sum(calls), 0) from nodes where name = '{module}'")[0][0]
        check(f"{module} is a scope, as often as it ran", calls == STEPS + 1, f"{calls}")
        kernels, took = other.get(module, (0, 0))
        # theirs are the loop's, ours those of the first run, too
        check(f"{module}: as many kernels a run as jax.profiler has", n > 0 and n * STEPS == kernels * (STEPS + 1), f"{n}, {kernels} {sorted(other)}")
        check(f"{module}: as long on the GPU, to 5 %", kernels and abs(ns / n / (took / kernels) - 1) <= 0.05, f"{ns / max(n, 1):.0f} ns a kernel, {took / max(kernels, 1):.0f}")
    passes = sql(env, "select count(*) from nodes where name like 'XlaPass%'")[0][0]
    check("the compiler's passes are one scope where they stand", passes <= 8, f"{passes}")
    print(view(env, "tree", "x", "-n", "40"))


def dump():
    """Kernels have the names and lines that a dump of the modules has."""
    env = room()
    where = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "xla"
    env["XLA_FLAGS"] = f"--xla_dump_to={where} --xla_dump_hlo_as_text"
    r = started([CTL, "run", "-n", "x", "-d", "both", "--", *program(env)], env, timeout=200)
    said = view(env, "tree", "x", "--xla-dump", str(where), "-n", "0")
    check("with a dump kernels have JAX's names and lines", r.returncode == 0 and "program.py:" in said, said[-900:])


judge((modules, dump), sys.argv[2:])
