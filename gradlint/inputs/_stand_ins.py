"""Functions to pass where an op takes a function."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def callables(name: str) -> list[Callable[..., Any]]:
    """Stand-ins for a function argument, by what its name says it computes."""
    if re.search(r"dist|metric|cdist|covar|gram|kernel", name.lower()):
        distance = squared_distance if re.search(r"sq", name.lower()) else pairwise_distance
        return [distance, stand_in]
    return [stand_in, pairwise_distance]


def stand_in(*args: Any, **kwargs: Any) -> torch.Tensor:
    """``tanh`` of the sum of the tensors that broadcast to the largest one."""
    import torch

    found = [item for item in (*args, *kwargs.values()) if isinstance(item, torch.Tensor)]
    found = [item for item in found if item.is_floating_point() or item.is_complex()]
    if not found:
        raise TypeError("a function argument was called without a tensor")
    largest = max(found, key=lambda item: (item.numel(), item.dim()))
    total = largest
    for item in found:
        if item is not largest:
            try:
                joined = total + item
            except RuntimeError:
                continue
            if joined.shape == largest.shape:
                total = joined
    return torch.tanh(total)


def pairwise_distance(x: torch.Tensor, y: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Distances between the rows of ``x`` and of ``y``."""
    return squared_distance(x, y).sqrt()


def squared_distance(x: torch.Tensor, y: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Squared distances between the rows of ``x`` and of ``y``."""
    return (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1)
