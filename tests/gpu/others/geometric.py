# SPDX-License-Identifier: MIT. geometric.py: torch_geometric: a graph network on one graph, and one on batches of small graphs.
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, global_mean_pool


class Nodes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(64, 64), GATConv(64, 8, heads=2, concat=False)

    def forward(self, x, edges):
        return self.second(F.relu(self.first(x, edges)), edges)


class Graphs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = GCNConv(16, 32), torch.nn.Linear(32, 2)

    def forward(self, data):
        return self.out(global_mean_pool(F.relu(self.conv(data.x, data.edge_index)), data.batch))


torch.manual_seed(0)
done = 0
data = Data(x=torch.randn(2000, 64), edge_index=torch.randint(0, 2000, (2, 16000)), y=torch.randint(0, 8, (2000,))).to("cuda")
model = Nodes().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(15):
    optimizer.zero_grad()
    F.cross_entropy(model(data.x, data.edge_index), data.y).backward()
    optimizer.step()
    done += 1
small = [Data(x=torch.randn(20, 16), edge_index=torch.randint(0, 20, (2, 60)), y=torch.tensor([i % 2])) for i in range(160)]
model = Graphs().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for batch in DataLoader(small, batch_size=16):
    batch = batch.to("cuda")
    optimizer.zero_grad()
    F.cross_entropy(model(batch), batch.y).backward()
    optimizer.step()
    done += 1
torch.cuda.synchronize()
print(f"steps={done}")
