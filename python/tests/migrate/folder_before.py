"""folder_before.py FOLDER: a training loop over a folder of images."""
import sys

import torch
from torch import nn
from vision import datasets, transforms

MEAN, STD = (0.5, 0.4, 0.5), (0.3, 0.3, 0.3)

transform = transforms.Compose([
    transforms.RandomResizedCrop(32),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize(MEAN, STD),
])
dataset = datasets.ImageFolder(sys.argv[1], transform)
loader = torch.utils.data.DataLoader(dataset, batch_size=30, shuffle=True, drop_last=True)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 2))
model.to(device)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, epochs=3, steps_per_epoch=len(loader))
for epoch in range(3):
    total, seen = 0.0, 0
    for number, (image, label) in enumerate(loader):
        image, label = image.to(device), label.to(device, non_blocking=True)
        loss = nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total, seen = total + loss.item() * len(label), seen + len(label)
        assert number < len(loader) and len(label) == loader.batch_size
    print(f"epoch {epoch}: {seen} of {len(loader.dataset)} images, mean {image.mean():.1f}, loss {total / seen:.2f}")
