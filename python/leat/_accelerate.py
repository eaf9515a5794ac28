"""What Hugging Face Accelerate expects of a loader that it has prepared.

Accelerate would wrap a loader, divide its batches among processes and read one batch ahead to notice the last one. A
feed has its ranks and knows its last batch, so the loader says that it is prepared already, and does the rest of what
Accelerate's own loaders do: it reports its loops to GradientState, which ends gradient accumulation and drops repeats
in `gather_for_metrics`, and moves batches to the device.
"""
from __future__ import annotations

from typing import Any, Iterable, Iterator


def watched(loader: Any, steps: Iterable[Any]) -> Iterator[Any]:
    """Yield `steps` while GradientState watches `loader`, which has end_of_dataloader and remainder."""
    from accelerate.state import GradientState  # type: ignore[import-untyped,import-not-found,unused-ignore]

    state = GradientState()
    state._add_dataloader(loader)
    try:
        yield from steps
    finally:
        state._remove_dataloader(loader)


def on_device(batch: Any) -> Any:
    from accelerate.state import PartialState
    from accelerate.utils import send_to_device  # type: ignore[import-untyped,import-not-found,unused-ignore]

    return send_to_device(batch, PartialState().device, non_blocking=True)
