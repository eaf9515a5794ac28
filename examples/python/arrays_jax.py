"""arrays_jax.py: fits a plane to arrays in memory with JAX. Batches lie over the engine's memory."""
import numpy as np

import leat

try:
    import jax
    import jax.numpy as jnp
except ModuleNotFoundError as missing:
    raise SystemExit(f"there is no module {missing.name}: pip install jax") from None

rng = np.random.default_rng(0)
x = rng.normal(size=(10_000, 8)).astype(np.float32)
truth = np.arange(8, dtype=np.float32)
y = x @ truth + 3 + 0.1 * rng.normal(size=10_000).astype(np.float32)

feed = leat.array(x=x, y=y).shuffle().batch(100, tail="drop").feed(seed=1)


@jax.jit
def step(weights, batch):
    def loss(weights):
        return jnp.mean((batch["x"] @ weights[:8] + weights[8] - batch["y"]) ** 2)

    value, slope = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * slope, value


weights = jnp.zeros(9)
for epoch in range(3):
    for batch in feed.jax():
        weights, loss = step(weights, batch)
    print(f"epoch {epoch}: loss {loss:.4f}")
print("weights", np.round(np.asarray(weights), 1).tolist())
