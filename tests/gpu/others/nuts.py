# SPDX-License-Identifier: MIT. nuts.py: numpyro: a logistic regression sampled by NUTS, on the GPU.
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def model(x, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(x.shape[1]), 1.0).to_event(1))
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Bernoulli(logits=x @ w + b), obs=y)


key = jax.random.key(0)
x = jax.random.normal(key, (200, 4))
y = (x[:, 0] > 0).astype(jnp.int32)
mcmc = MCMC(NUTS(model, max_tree_depth=3), num_warmup=20, num_samples=20, progress_bar=False)
mcmc.run(jax.random.key(1), x, y)
samples = mcmc.get_samples()
jax.block_until_ready(samples)
print(f"samples={samples['w'].shape[0]}")
