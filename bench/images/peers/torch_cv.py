"""PyTorch's DataLoader over files in class folders, with OpenCV and NumPy."""
from peers import torch_pil


def batches(case, data, workers):
    return torch_pil.batches(case, data, workers, "cv")
