# SPDX-License-Identifier: MIT. jax_train.py [STEPS]: JAX: a convolution net's jitted training loop, scan, vmap, and a loop on the device.
import sys
from functools import partial

import jax
import jax.numpy as jnp

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30


def init(key):
    k = jax.random.split(key, 3)
    return {"conv": jax.random.normal(k[0], (3, 3, 3, 16)) * 0.1, "w": jax.random.normal(k[1], (16 * 16 * 16, 64)) * 0.01,
            "out": jax.random.normal(k[2], (64, 10)) * 0.1}


def predict(p, x):
    x = jax.lax.conv_general_dilated(x, p["conv"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.relu(x).reshape(x.shape[0], -1)
    return jax.nn.relu(x @ p["w"]) @ p["out"]


def loss_of(p, x, y):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(predict(p, x)) * jax.nn.one_hot(y, 10), axis=1))


@jax.jit
def update(p, m, x, y):
    loss, g = jax.value_and_grad(loss_of)(p, x, y)
    m = jax.tree.map(lambda a, b: 0.9 * a + b, m, g)
    return jax.tree.map(lambda a, b: a - 0.01 * b, p, m), m, loss


@partial(jax.jit, static_argnums=1)
def recurrent(x, n):
    return jax.lax.scan(lambda c, _: (jnp.tanh(c @ c.T) + 0.1, c.sum()), x, None, length=n)


@jax.jit
def until(x):
    return jax.lax.while_loop(lambda c: c[1] < 20, lambda c: (jnp.cos(c[0]), c[1] + 1), (x, 0))


assert jax.default_backend() == "gpu", jax.default_backend()
key = jax.random.key(0)
params = init(key)
momentum = jax.tree.map(jnp.zeros_like, params)
x = jax.random.normal(key, (32, 32, 32, 3))
y = jax.random.randint(key, (32,), 0, 10)
done = 0
for _ in range(steps):
    params, momentum, loss = update(params, momentum, x, y)
    done += 1
carry, sums = recurrent(jnp.eye(64), 25)
cosines, _ = until(jnp.ones(128))
squares = jax.vmap(lambda a: jnp.sort(a @ a.T))(jnp.ones((8, 32, 32)))
jax.block_until_ready((params, carry, sums, cosines, squares))
assert float(loss) < 10
print(f"steps={done}")
