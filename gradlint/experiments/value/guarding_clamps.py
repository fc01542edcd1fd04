"""Clamps that keep forward inside its domain: ``atanh(x.clamp(-1 + eps, 1 - eps))``.

Beyond such a clamp forward is constant, and without it not finite. A gradient that goes on there is
wrong, at values that the op is hardly meant for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gradlint.experiments.subject import Subject
from gradlint.numerics.products import all_finite
from gradlint.trace.op_io import OpRaised

_CLAMPING = frozenset({"clamp", "clamp_min", "clamp_max"})


class Unclamped(TorchDispatchMode):
    """Lets values through clamps as they are.

    Attributes:
        changed: whether a clamp would have changed one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changed = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        packet = getattr(getattr(func, "overloadpacket", None), "__name__", "")
        if packet.rstrip("_") not in _CLAMPING or func._schema.overload_name.endswith("out"):
            return func(*args, **(kwargs or {}))
        value = args[0]
        if packet.endswith("_"):
            clamped = func(value.clone(), *args[1:], **(kwargs or {}))
            found = value
        else:
            clamped = func(*args, **(kwargs or {}))
            found = value.expand(clamped.shape).to(clamped.dtype, copy=True)
        self.changed |= not torch.equal(clamped, found)
        return found


def is_guarded(subject: Subject, values: Sequence[torch.Tensor] | None = None) -> bool:
    """Whether forward is finite at ``values`` (default: the sample's own) because of its clamps,
    and only because of them. Two forward calls."""
    watched = Unclamped()
    problem = subject.problem.through(lambda invoke: invoke)
    point = subject.problem.values() if values is None else values
    try:
        before = subject.problem.forward(point)
        problem.surroundings = lambda: watched
        after = problem.forward(point)
    except OpRaised:
        return False
    finally:
        subject.problem.forward_calls += problem.forward_calls
    if not watched.changed or not all(all_finite(item.value) for item in before):
        return False
    return not all(all_finite(item.value) for item in after)
