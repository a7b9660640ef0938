# SPDX-License-Identifier: MIT. kineto_work.py: a small training that other profilers record; their files are read by ours.
"""kineto_work.py kineto|proton|proton-trace|none|jax OUT [STEPS]

GPT-2 of two layers, 2 + STEPS steps (2), the GPU waited for after each. kineto: OUT.json.gz with shapes, stacks and
memory of the last STEPS, and OUT.counts.json, what its own key_averages() says. proton: OUT.hatchet, of the same steps.
jax: OUT.json.gz, jax.profiler's own, of a loop of its own."""
import json
import pathlib
import sys

tool, out = sys.argv[1], sys.argv[2]
STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 2


def jax_loop():
    import tempfile

    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(w, x):
        loss, g = jax.value_and_grad(lambda w: jnp.mean((jax.nn.relu(x @ w) - 1) ** 2))(w)
        return w - 0.1 * g, loss
    w, x = jnp.ones((256, 256)) * 0.01, jnp.ones((64, 256))
    w, loss = step(w, x)
    jax.block_until_ready(w)
    with tempfile.TemporaryDirectory() as place:
        jax.profiler.start_trace(place)
        for i in range(8):
            with jax.profiler.StepTraceAnnotation("train", step_num=i):
                w, loss = step(w, x)
                jax.block_until_ready(w)
        jax.profiler.stop_trace()
        found = sorted(pathlib.Path(place).rglob("*.trace.json.gz"))
        pathlib.Path(out + ".json.gz").write_bytes(found[0].read_bytes())


def training():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(0)
    net = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=512, n_positions=64)).cuda()
    opt = torch.optim.AdamW(net.parameters())
    ids = torch.randint(0, 512, (4, 64), device="cuda")

    def step():
        opt.zero_grad()
        net(ids, labels=ids).loss.backward()
        opt.step()
        torch.cuda.synchronize()
    return step


def kineto(step):
    from torch.profiler import ProfilerActivity, profile, schedule

    def ready(p):
        p.export_chrome_trace(out + ".json.gz")
        rows = [{"name": e.key, "device": str(e.device_type).rpartition(".")[2], "count": e.count, "device_time_us": e.self_device_time_total,
                 "cpu_time_us": e.self_cpu_time_total} for e in p.key_averages()]
        pathlib.Path(out + ".counts.json").write_text(json.dumps(rows, indent=0))
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=STEPS),
                 on_trace_ready=ready, record_shapes=True, with_stack=True, profile_memory=True) as p:
        for _ in range(2 + STEPS):
            step()
            p.step()


def main():
    if tool == "jax":
        return jax_loop()
    step = training()
    if tool == "kineto":
        return kineto(step)
    for i in range(2 + STEPS):
        if i == 2 and tool.startswith("proton"):
            import triton.profiler as proton
            proton.start(out, data="trace" if tool.endswith("-trace") else "tree")
        step()
    if tool.startswith("proton"):
        proton.finalize()


if __name__ == "__main__":
    main()
