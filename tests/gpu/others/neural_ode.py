# SPDX-License-Identifier: MIT. neural_ode.py: torchdiffeq: a small network as the right-hand side, solved and trained by the adjoint method.
import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, t, y):
        return self.net(y ** 3)


torch.manual_seed(0)
field = Field().cuda()
t = torch.linspace(0.0, 2.0, 12, device="cuda")
start = torch.randn(128, 2, device="cuda")
with torch.no_grad():
    truth = odeint(lambda _, y: -y, start, t, method="rk4")
optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
done = 0
for _ in range(8):
    optimizer.zero_grad()
    loss = (odeint_adjoint(field, start, t, method="rk4") - truth).abs().mean()
    loss.backward()
    optimizer.step()
    done += 1
torch.cuda.synchronize()
print(f"steps={done}")
