# SPDX-License-Identifier: MIT. nccl_work.py: one rank of a program that communicates and does nothing else; nccl_check.py runs it.
"""torchrun nccl_work.py OUT STEPS WARM: each step is an all_reduce, an all_gather, a reduce_scatter of 4 MB and a send to the next rank,
received from the one before; WARM more come first. OUT: of rank 0, {"ms": each step's, "nccl": its version}, by the host's clock between two waits."""
import json
import pathlib
import sys
import time

import torch
import torch.distributed as dist

out, steps, warm = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

dist.init_process_group("nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
whole = torch.ones(1 << 20, device="cuda")
part = torch.ones((1 << 20) // ranks, device="cuda")
there = torch.empty_like(part)


def step():
    dist.all_reduce(whole)
    dist.all_gather_into_tensor(whole, part)
    dist.reduce_scatter_tensor(part, whole)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, part, (rank + 1) % ranks), dist.P2POp(dist.irecv, there, (rank - 1) % ranks)]):
        work.wait()


took = []
for i in range(warm + steps):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    step()
    torch.cuda.synchronize()
    if i >= warm:
        took.append(1e3 * (time.perf_counter() - begin))
if rank == 0:
    out.write_text(json.dumps({"ms": took, "nccl": ".".join(map(str, torch.cuda.nccl.version()))}))
dist.destroy_process_group()
