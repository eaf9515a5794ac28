"""cells_torch.py 'cells-*.tfrecord' [EPOCHS]: finds parasites in blood cells with PyTorch.

Make the data with `make_cells cells --count 2000` and `leat pack cells --output cells --shards 4`. Stop it and
start it again: it goes on behind the last batch it trained on.
"""
import json
import os
import sys

import torch
from torch import nn

import leat

pattern, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
checkpoint = "cells_torch.json"

cells = leat.tfrecord(pattern).example(image=bytes, label=int)
train = (cells.shuffle().decode().resize(48, 48).scale(1 / 255).random_flip().random_brightness(0.1)
         .layout("chw").batch(32).feed(seed=1))
device = "cuda" if torch.cuda.is_available() else "cpu"
loader = leat.torch.DataLoader(train, device=device, fields=("image", "label"))
if os.path.exists(checkpoint):
    with open(checkpoint) as file:
        loader.load_state_dict(json.load(file))

model = nn.Sequential(nn.Conv2d(3, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 2)).to(device)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
while train.epoch < epochs:
    epoch, right, count = train.epoch, 0, 0
    for image, label in loader:
        scores = model(image)
        loss = nn.functional.cross_entropy(scores, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (scores.argmax(1) == label).sum().item()
        count += len(label)
        with open(checkpoint, "w") as file:
            json.dump(loader.state_dict(), file)
    print(f"epoch {epoch}: loss {loss.item():.3f}, {right / count:.0%} right, limited by {train.stats()['limit']}")
