"""Clamps that keep forward inside its domain: ``atanh(x.clamp(-1 + eps, 1 - eps))``.

Beyond such a clamp forward is constant, and without it not finite, or of something that is as small
as what keeps from dividing by zero, ``p.clamp(min=1e-12).log()``. A gradient that goes on there is
wrong, at values that the op is hardly meant for. A clamp of what no differentiable input moves, as
of the number of rows in a group, says nothing of the values of inputs. Nor does a guard say
anything of an element that it does not bound, where another clamp is part of the function.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from typing import Any

import torch

from gradlint.experiments.subject import Subject
from gradlint.numerics.products import all_finite
from gradlint.ops.dispatch_mode import DispatchMode
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

_CLAMPING = frozenset({"clamp", "clamp_min", "clamp_max"})

#: By how much inputs move, in parts of one and of their size, to see which clamped values depend on
#: them (any step that is far above rounding will do).
STEP = 1e-3

#: The largest positive lower bound that only keeps from zero (heuristic: an epsilon is 1e-30 to
#: 1e-6, and the least values that an op is meant for are rarely below 1e-4).
TINY = 1e-6


class Clamps(DispatchMode):
    """Notes the values that forward clamps, in order.

    Attributes:
        values: copies of them; those of integers, through which no gradient goes, are left out.
        bounded: where each is changed by its clamp.
    """

    def __init__(self) -> None:
        super().__init__()
        self.values: list[torch.Tensor] = []
        self.bounded: list[torch.Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if not _clamps(func, args):
            return func(*args, **(kwargs or {}))
        before = args[0].detach().clone()
        found = func(*args, **(kwargs or {}))
        self.values.append(before.expand(found.shape))
        self.bounded.append(found.detach() != before)
        return found


class Unclamped(DispatchMode):
    """Lets values through some clamps as they are.

    Args:
        chosen: which of those that :class:`Clamps` counts.

    Attributes:
        changed: whether one of these clamps would have changed a value.
        from_zero: whether all that would have kept it from zero alone.
    """

    def __init__(self, chosen: Collection[int]) -> None:
        super().__init__()
        self.chosen = chosen
        self.changed = False
        self.from_zero = True
        self._met = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if not _clamps(func, args):
            return func(*args, **(kwargs or {}))
        self._met += 1
        if self._met - 1 not in self.chosen:
            return func(*args, **(kwargs or {}))
        packet = func.overloadpacket.__name__
        value = args[0]
        if packet.endswith("_"):
            clamped = func(value.clone(), *args[1:], **(kwargs or {}))
            found = value
        else:
            clamped = func(*args, **(kwargs or {}))
            found = value.expand(clamped.shape).to(clamped.dtype, copy=True)
        if not torch.equal(clamped, found):
            self.changed = True
            bound = clamped[clamped != found]
            self.from_zero &= bool(((bound > 0.0) & (bound <= TINY)).all())
        return found


def is_guarded(
    subject: Subject,
    values: Sequence[torch.Tensor] | None = None,
    at: tuple[int, Sequence[int]] | None = None,
) -> bool:
    """Whether forward is finite at ``values`` (default: the sample's own) because of its clamps of
    what depends on differentiable inputs, and only because of them, or they keep from zero what is
    nearly zero. Three forward calls; where other clamps bound values there, too, one for each clamp
    and one more.

    Args:
        at: position of an input, and the index of an element of it that moves what such a clamp
            bounds, if others bound something as well.
    """
    problem = subject.problem.through(lambda invoke: invoke)
    point = subject.problem.values() if values is None else values
    seen = Clamps()
    try:
        problem.surroundings = lambda: seen
        before = problem.forward(point)
        if not all(all_finite(item.value) for item in before):
            return False
        chosen = _that_depend(problem, point, seen.values)
        if not _guards(problem, point, chosen):
            return False
        return at is None or _is_bounded_by_guards(problem, point, seen, chosen, at)
    except OpRaised:
        return False
    finally:
        subject.problem.forward_calls += problem.forward_calls


def _guards(problem: Problem, point: Sequence[torch.Tensor], chosen: Collection[int]) -> bool:
    """Whether forward is not finite without the clamps ``chosen``, or they keep from zero."""
    watched = Unclamped(chosen)
    problem.surroundings = lambda: watched
    after = problem.forward(point)
    kept = watched.from_zero or not all(all_finite(item.value) for item in after)
    return watched.changed and kept


def _is_bounded_by_guards(
    problem: Problem,
    point: Sequence[torch.Tensor],
    seen: Clamps,
    chosen: Collection[int],
    at: tuple[int, Sequence[int]],
) -> bool:
    """Whether an element moves what one of the clamps that guard forward bounds; always where no
    others bound anything."""
    biting = [k for k in sorted(chosen) if bool(seen.bounded[k].any())]
    guards = [k for k in biting if _guards(problem, point, {k})]
    if len(guards) == len(biting) or not guards:
        return True
    position, index = at
    values = [value.detach().clone() for value in point]
    values[position][tuple(index)] = _moved(values[position])[tuple(index)]
    moved = Clamps()
    problem.surroundings = lambda: moved
    problem.forward(values)
    pairs = {k: (seen.values[k], moved.values[k]) for k in guards if k < len(moved.values)}
    return any(
        one.shape != other.shape or bool((one != other)[seen.bounded[k]].any())
        for k, (one, other) in pairs.items()
    )


def _clamps(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether ``func`` clamps a tensor of floating numbers."""
    packet = getattr(getattr(func, "overloadpacket", None), "__name__", "")
    return (
        packet.rstrip("_") in _CLAMPING
        and not func._schema.overload_name.endswith("out")
        and bool(args)
        and isinstance(args[0], torch.Tensor)
        and args[0].is_floating_point()
    )


def _moved(value: torch.Tensor) -> torch.Tensor:
    """``value`` with every element a little larger."""
    if not value.is_floating_point():
        return value
    there = value.detach()
    return (there + STEP * (1.0 + there.abs())).requires_grad_(value.requires_grad)


def _that_depend(
    problem: Problem, point: Sequence[torch.Tensor], values: Sequence[torch.Tensor]
) -> frozenset[int]:
    """Positions of those of the clamped ``values`` that change where the inputs move away from
    ``point``; all of them where forward raises or takes another way there."""
    moved = Clamps()
    problem.surroundings = lambda: moved
    with contextlib.suppress(OpRaised):
        problem.forward([_moved(value) for value in point])
    if [value.shape for value in values] != [value.shape for value in moved.values]:
        return frozenset(range(len(values)))
    pairs = enumerate(zip(values, moved.values, strict=True))
    return frozenset(k for k, (one, other) in pairs if not _equal(one, other))


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.nan_to_num(), other.nan_to_num())
