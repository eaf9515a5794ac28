"""Batches as PyTorch tensors, and a feed as a DataLoader."""
from ._torch_loader import DataLoader
from ._torch_tensors import Jagged, _OnDevice, tensors, view

__all__ = ["DataLoader", "Jagged", "tensors", "view"]
