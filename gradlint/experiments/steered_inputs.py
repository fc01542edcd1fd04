"""Samples in which what forward computes is on the other side of a number that it compares with,
found by following its gradient.

A cosine beyond the margin of a loss, a pair beyond the cutoff, a point inside of a box: no factor
of all inputs leads there, and random inputs rarely do. Autograd through forward's own operations
tells how what is compared changes with each input, and some steps along that lead across.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradlint.experiments.forward_under_autograd import through_autograd
from gradlint.experiments.subject import Subject
from gradlint.inputs.designed import (
    ANY_SIGN,
    SAME_SIGN,
    Designed,
    domain_of,
    exchanged,
    is_floating,
    leaf_like,
)
from gradlint.model.sample import Sample, SampleKind
from gradlint.numerics.products import rms
from gradlint.trace.comparisons import ITERATES
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: PyTorch's functions that compare with a number, and those that bound by it.
_ORDERING = frozenset({"gt", "ge", "lt", "le", "greater", "less", "greater_equal", "less_equal"})
_BOUNDING = frozenset({"clamp", "clip", "clamp_min", "clamp_max", "hardtanh", "relu", "threshold"})

#: Numbers up to this size are no bound that values are meant to pass: they keep from dividing by
#: zero (heuristic: epsilons are between 1e-12 and 1e-2).
GUARD = 1e-2

#: How far beyond the threshold what passes it shall be, in units of the typical distance from it
#: before, and the share of the elements that shall pass.
MARGIN, SHARE = 0.3, 0.5

#: Share of that by which every element is clear of the threshold then, where it may have a kink.
CLEAR = 0.1

#: Steps, numbers that are tried and passed, and elements of an input, at most, and how much larger
#: inputs may get, in units of the typical element (heuristic: what is not reached soon is not
#: reached, and much larger inputs are of another kind).
MOST_STEPS, MOST_TRIED, MOST_PASSED = 6, 4, 2
MOST_ELEMENTS, FARTHEST = 10_000, 4.0

#: Positive numbers get no smaller than this share of what they were in one step.
LEAST_SHARE = 0.3


@dataclass(frozen=True)
class _Seen:
    """What was compared with a number, connected to the inputs by a graph.

    Args:
        threshold: the number.
        value: what was compared.
        bounds: whether it is bounded by the number.
        guards: whether the number may only keep it from zero.
    """

    threshold: float
    value: torch.Tensor
    bounds: bool
    guards: bool

    @property
    def above(self) -> torch.Tensor:
        """Which elements are above the number."""
        return self.value.detach() > self.threshold

    @property
    def one_sided(self) -> bool:
        """Whether all elements are on one side."""
        return bool(self.above.all()) or not bool(self.above.any())


class _Compared(TorchFunctionMode):
    """Keeps what forward compares with numbers, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[_Seen] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "").strip("_")
        if name in _ORDERING or name in _BOUNDING:
            self._keep(name, args, kwargs)
        return func(*args, **kwargs)

    def _keep(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        value = args[0] if args else kwargs.get("input")
        if not isinstance(value, torch.Tensor) or value.grad_fn is None:
            return
        numbers = [0.0] if name == "relu" else [*args[1:], *kwargs.values()]
        bounds = name in _BOUNDING
        for number in numbers:
            if type(number) not in (int, float):
                continue
            guards = bounds and name != "relu" and abs(number) <= GUARD
            self.seen.append(_Seen(float(number), value, bounds, guards))


def steered_samples(subject: Subject, sample: Sample) -> list[tuple[float, Designed]]:
    """``sample`` with inputs that lead across a number with which forward compares what it computes
    of them, and that number; :data:`MOST_PASSED` at most.

    Args:
        subject: the op; the calls count there.
        sample: its sample, with the domains of its values.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forward was not written to run under autograd
        plain = through_autograd(subject)
        if plain is None:
            return []
        try:
            return list(itertools.islice(_steered(plain, sample), MOST_PASSED))
        except (OpRaised, RuntimeError):
            return []
        finally:
            subject.problem.forward_calls += plain.forward_calls
            subject.problem.backward_calls += plain.backward_calls


def _steered(plain: Problem, sample: Sample) -> Iterator[tuple[float, Designed]]:
    values = plain.values()
    compared = _compared(plain, values)[1]
    times = Counter((seen.threshold, seen.bounds) for seen in compared)
    places = [
        place
        for place, seen in enumerate(compared)
        if seen.one_sided
        and times[seen.threshold, seen.bounds] <= ITERATES
        # What bounds all there is from below is no guard: nothing passes it.
        and not (seen.guards and bool(seen.above.any()))
    ]
    free = _free(plain, sample)
    for place in places[:MOST_TRIED] if free else ():
        before = compared[place]
        point = _across(plain, values, place, free)
        if point is None:
            continue
        exchange = {
            id(tensor): leaf_like(point[position], tensor) for position, (_, tensor) in free.items()
        }
        side = "below" if bool(before.above.all()) else "above"
        label = f"where what is compared with {before.threshold:g} is {side} it"
        kind: SampleKind = "same" if sample.origin == "inferred" else "special"
        yield before.threshold, Designed(exchanged(sample, exchange, label, kind), {})


def _free(plain: Problem, sample: Sample) -> dict[int, tuple[bool, torch.Tensor]]:
    """Position of each input whose values may change → whether they must keep their sign, and the
    tensor of the sample."""
    tensors = dict(sample.named_tensors(plain.op.signature))
    found = {}
    for position, item in enumerate(plain.inputs):
        tensor = tensors.get(item.name)
        if tensor is None or not is_floating(tensor) or not 0 < tensor.numel() <= MOST_ELEMENTS:
            continue
        domain = domain_of(sample, item.name)
        if domain in SAME_SIGN:
            found[position] = (domain not in ANY_SIGN, tensor)
    return found


def _compared(
    plain: Problem, values: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[_Seen]]:
    """The leaves of a call of forward at ``values``, and what it compared."""
    watched = _Compared()
    plain.surroundings = lambda: watched
    try:
        leaves, _ = plain.linearize(values)
    finally:
        plain.surroundings = None
    return leaves, watched.seen


def _across(
    plain: Problem,
    values: Sequence[torch.Tensor],
    place: int,
    free: dict[int, tuple[bool, torch.Tensor]],
) -> list[torch.Tensor] | None:
    """Values at which some elements of what is compared at ``place`` are on its other side, clear
    of it; None where no steps lead there."""
    point = [value.detach().clone() for value in values]
    first = _compared(plain, point)[1][place]
    spread = (first.threshold - first.value.detach()).abs()
    margin = MARGIN * float(spread.median())
    sign = -1.0 if bool(first.above.all()) else 1.0
    for _ in range(MOST_STEPS):
        leaves, seen = _compared(plain, point)
        here = seen[place] if place < len(seen) else first
        if (here.threshold, here.value.shape) != (first.threshold, first.value.shape):
            return None  # another branch was taken
        distance = sign * (here.threshold - here.value)
        if not here.one_sided and bool((distance.detach().abs() > CLEAR * margin).all()):
            return point
        # The nearest ones pass: what is far away would take the inputs far away.
        count = max(1, int(SHARE * distance.numel()))
        left = distance.reshape(-1).topk(count, largest=False).values + margin
        left = left.clamp(min=0.0).sum()
        gradients = torch.autograd.grad(left, [leaves[k] for k in free], allow_unused=True)
        slopes = {k: g for k, g in zip(free, gradients, strict=True) if g is not None}
        square = sum(float(slope.square().sum()) for slope in slopes.values())
        if not square:
            return None
        rate = float(left.detach()) / square  # a step of Newton's method
        for position, slope in slopes.items():
            step = -rate * slope.detach()
            point[position] = _moved(point[position], step, keep_sign=free[position][0])
        if not all(_is_near(new, old) for new, old in zip(point, values, strict=True)):
            return None
    return None


def _moved(now: torch.Tensor, step: torch.Tensor, *, keep_sign: bool) -> torch.Tensor:
    """``now`` after a step, which changes no sign if that is to be kept."""
    if not keep_sign:
        return now + step
    least = LEAST_SHARE * now.abs()
    return torch.where((now + step) * now.sign() > least, now + step, least * now.sign())


def _is_near(new: torch.Tensor, old: torch.Tensor) -> bool:
    """Whether values are finite, and of the size that they had."""
    size = rms(old.detach()) or 1.0
    return bool(new.isfinite().all()) and rms(new) <= FARTHEST * size
