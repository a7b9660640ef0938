# SPDX-License-Identifier: MIT. cuda_graphs.py: a whole training step captured once and replayed, and a captured forward pass.
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1024, 512)).cuda()
loss_of = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
x, y = torch.randn(64, 512, device="cuda"), torch.randn(64, 512, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x), y).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()
done = 0
for _ in range(40):
    x.copy_(torch.randn(64, 512), non_blocking=True)
    graph.replay()
    done += 1
net = torch.cuda.make_graphed_callables(nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).cuda(), (x.clone().requires_grad_(),))
for _ in range(20):
    net(x.clone().requires_grad_()).sum().backward()
torch.cuda.synchronize()
assert loss.item() > 0
print(f"replays={done}")
