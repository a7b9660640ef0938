# SPDX-License-Identifier: MIT. gaussian.py: gpytorch: an exact Gaussian process, fitted and asked.
import gpytorch
import torch


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


torch.manual_seed(0)
x = torch.linspace(0, 1, 300, device="cuda")
y = torch.sin(x * 6.28) + 0.1 * torch.randn(300, device="cuda")
likelihood = gpytorch.likelihoods.GaussianLikelihood().cuda()
model = Model(x, y, likelihood).cuda()
model.train()
likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
score = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
done = 0
for _ in range(25):
    optimizer.zero_grad()
    loss = -score(model(x), y)
    loss.backward()
    optimizer.step()
    done += 1
model.eval()
likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    answer = likelihood(model(torch.linspace(0, 1, 51, device="cuda")))
    low, high = answer.confidence_region()
torch.cuda.synchronize()
assert bool((low < high).all())
print(f"steps={done}")
