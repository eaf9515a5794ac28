"""lm_tokens.py: a language model of two layers on a flat file of tokens, as GPT trainers keep them.

The text is made up: a number counts up, and now and then jumps. The model has to learn to count.
"""
import tempfile

import numpy as np

import leat

try:
    import torch
    from torch import nn
except ModuleNotFoundError as missing:
    raise SystemExit(f"there is no module {missing.name}: pip install torch") from None

rng = np.random.default_rng(0)
text = np.cumsum(np.where(rng.random(100_000) < 0.05, rng.integers(1, 64, 100_000), 1)) % 64
folder = tempfile.TemporaryDirectory()
text.astype(np.uint16).tofile(f"{folder.name}/train.bin")

feed = leat.tokens(f"{folder.name}/train.bin", length=64, shift=1).shuffle().batch(32).feed(seed=1)
print(feed, f"{feed.samples} windows")
model = nn.Sequential(nn.Embedding(64, 32), nn.Linear(32, 64))
optimizer = torch.optim.Adam(model.parameters(), 3e-2)
for number, batch in enumerate(leat.torch.tensors(batch) for batch in feed.steps(100)):
    scores = model(batch["tokens"])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch["targets"].flatten().long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 25 == 24:
        print(f"step {number + 1}: loss {loss.item():.3f}")
