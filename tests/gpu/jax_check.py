# SPDX-License-Identifier: MIT. jax_check.py: JAX's modules as scopes, and their time on the GPU, against JAX's own profiler.
"""jax_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed". The same program runs three times: first for the
caches of what tunes itself, under protond, and under jax.profiler, which needs CUPTI for itself."""
import gzip
import json
import pathlib
import sys

from judge import check, judge, started
from torch_room import CTL, VIEW, room, sql, view

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
w, x = jnp.full((4096, 4096), 0.01), jnp.ones((8192, 4096))
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
        # what XLA tries out while it compiles a module stands below its compiling
        took = [row[0] for row in sql(env, "select dur_ns from (select path, start_ns, dur_ns from kernels union all select path, start_ns, dur_ns "
                                           f"from copies) where path like '%{module}%' and path not like '%Xla%' order by start_ns")]
        calls = sql(env, f"select coalesce(sum(calls), 0) from nodes where name = '{module}'")[0][0]
        check(f"{module} is a scope, as often as it ran", calls == STEPS + 1, f"{calls}")
        kernels, ns = other.get(module, (0, 0))
        # theirs are the loop's, ours those of the first run, too
        check(f"{module}: as many operations a run as jax.profiler has", took and len(took) * STEPS == kernels * (STEPS + 1), f"{len(took)}, {kernels} {sorted(other)}")
        mine = sum(took[-kernels:]) if kernels else 0
        check(f"{module}: as long on the GPU, to 5 %", ns and abs(mine / ns - 1) <= 0.05, f"{mine:.0f} and {ns:.0f} ns")
        print(f"      {module}: {mine:.0f} and {ns:.0f} ns")
    passes = sql(env, "select distinct name from nodes where name like 'XlaPass%'")
    check("the compiler's passes are one scope where they stand", passes == [["XlaPass"]], f"{passes}")
    lines = sql(env, "select n.path || '/' || n.name, m.name, m.value from nodes n join metrics m on m.node = n.node where m.name like '%ource locations'")
    check("without a dump an operation's lines are a property", any("jit_step/" in path and "program.py" in str(value) for path, _, value in lines), f"{lines[:9]}")
    print("      numbers and properties:", *(row[0] for row in sql(env, "select distinct name from metrics")))
    print(view(env, "tree", "x", "-n", "40"))
    r = started([VIEW, "steps", "x"], env, timeout=60)
    print(r.stdout, r.stderr, view(env, "steps", "x", "--scope", "jit_step"))


def dump():
    """Kernels have the names and lines that a dump of the modules has."""
    env = room()
    where = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "xla"
    env["XLA_FLAGS"] = f"--xla_dump_to={where} --xla_dump_hlo_as_text"
    r = started([CTL, "run", "-n", "x", "-d", "both", "--", *program(env)], env, timeout=200)
    said = view(env, "tree", "x", "--xla-dump", str(where), "-n", "0")
    check("with a dump kernels have JAX's names and lines", r.returncode == 0 and "program.py:" in said, said[-900:])


judge((modules, dump), sys.argv[2:])
