"""The smallest arguments that still show a defect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from gradlint.model.sample import Sample, map_tensors

#: Trials of one finding, and seconds of processor time, at most (heuristic: an operator of five
#: arguments takes some 40; each runs the rule anew).
MOST_TRIALS, MOST_SECONDS = 120, 20.0

#: Numbers that a person reads at once, none of them twice, so that order and sign still show.
_SIMPLE = (1.0, 2.0, 0.5, 3.0, -1.0, 1.5, -2.0, 4.0, -0.5, 2.5)

#: Axes of one size are tied until proven otherwise: sizes that are tried for them.
_SIZES = (1, 2, 3)


@dataclass
class Shrunk:
    """Arguments after shrinking.

    Args:
        sample: the smallest that still shows it.
        before, after: elements of all tensors.
        trials: how many were tried.
    """

    sample: Sample
    before: int
    after: int
    trials: int


def elements(sample: Sample) -> int:
    """How many numbers its tensors hold."""
    return sum(tensor.numel() for _, tensor in sample.named_tensors(None))


def shrunk(sample: Sample, shows: Callable[[Sample], bool]) -> Shrunk:
    """The smallest sample found from ``sample`` that ``shows`` accepts: fewer arguments, smaller
    sizes, fewer inputs that require grad, simpler numbers."""
    until = time.process_time() + MOST_SECONDS
    trials = 0
    before = elements(sample)

    def fits(candidate: Sample) -> bool:
        nonlocal trials
        if trials >= MOST_TRIALS or time.process_time() > until:
            return False
        trials += 1
        try:
            return shows(candidate)
        except Exception:  # it is no input of the operator, which may raise anything
            return False

    for steps in (_fewer_arguments, _smaller, _fewer_inputs, _simpler):
        progress = True
        while progress and trials < MOST_TRIALS:
            progress = False
            for candidate in steps(sample):
                if fits(candidate):
                    sample, progress = candidate, steps is not _simpler
                    break
    return Shrunk(sample, before, elements(sample), trials)


def _with(sample: Sample, args: Any, kwargs: Any) -> Sample:
    return replace(sample, args=tuple(args), kwargs=dict(kwargs), otherwise=None)


def _fewer_arguments(sample: Sample) -> Iterator[Sample]:
    """Without the last argument; with None in place of a tensor."""
    if len(sample.args) > 1:
        yield _with(sample, sample.args[:-1], sample.kwargs)
    for key in sample.kwargs:
        rest = {name: value for name, value in sample.kwargs.items() if name != key}
        yield _with(sample, sample.args, rest)
    for place, value in enumerate(sample.args):
        if isinstance(value, torch.Tensor):
            args = (*sample.args[:place], None, *sample.args[place + 1 :])
            yield _with(sample, args, sample.kwargs)


def _tensors(sample: Sample) -> list[torch.Tensor]:
    found = {id(t): t for _, t in sample.named_tensors(None)}
    return [t for t in found.values() if t.layout == torch.strided and not t.is_nested]


def _smaller(sample: Sample) -> Iterator[Sample]:
    """Every size in place of which a smaller one is tried, on all axes that have it, then on one
    axis alone; integers that are that size go with it."""
    found = _tensors(sample)
    sizes = sorted({size for t in found for size in t.shape if size > 1}, reverse=True)
    for size in sizes:
        for new in dict.fromkeys((*_SIZES, size // 2, size - 1)):
            if 0 < new < size:
                axes = {(id(t), k) for t in found for k, s in enumerate(t.shape) if s == size}
                yield _cut(sample, axes, new, size)
    for tensor in found:
        for axis, size in enumerate(tensor.shape):
            for new in dict.fromkeys((*_SIZES, size // 2)):
                if 0 < new < size:
                    yield _cut(sample, {(id(tensor), axis)}, new, None)


def _cut(sample: Sample, axes: set[tuple[int, int]], new: int, size: int | None) -> Sample:
    """Those ``axes`` at size ``new``; indices stay in range, and integers equal to ``size`` too."""

    def smaller(tensor: torch.Tensor) -> torch.Tensor:
        for key, axis in axes:
            if key == id(tensor):
                cut = cut_of.get(id(tensor), tensor)
                cut_of[id(tensor)] = cut.narrow(axis, 0, new)
        made = cut_of.get(id(tensor), tensor)
        if size is not None and _is_index(tensor) and made.numel():
            made = made.clamp(max=new - 1) if int(made.max()) < size else made
        return made.clone() if made is not tensor else made

    def number(value: Any) -> Any:
        same = isinstance(value, int) and not isinstance(value, bool) and value == size
        return new if same else value

    cut_of: dict[int, torch.Tensor] = {}
    made = _with_tensors(sample, smaller)
    return _with(sample, map(number, made.args), {k: number(v) for k, v in made.kwargs.items()})


def _is_index(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def _with_tensors(sample: Sample, change: Callable[[torch.Tensor], torch.Tensor]) -> Sample:
    def made(tensor: torch.Tensor) -> torch.Tensor:
        found = change(tensor)
        return found if found is tensor else found.detach().requires_grad_(tensor.requires_grad)

    args, kwargs = map_tensors((sample.args, sample.kwargs), made)
    return _with(sample, args, kwargs)


def _fewer_inputs(sample: Sample) -> Iterator[Sample]:
    """With one input that requires grad less."""
    wanting = [t for t in _tensors(sample) if t.requires_grad]
    for one in wanting if len(wanting) > 1 else ():
        args, kwargs = map_tensors((sample.args, sample.kwargs), partial(_detached, one))
        yield _with(sample, args, kwargs)


def _detached(one: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor is one else tensor


def _simpler(sample: Sample) -> Iterator[Sample]:
    """With simple numbers in all tensors; with numbers of few digits, coarse ones first; with
    simple numbers in one tensor or argument."""
    floats = [t for t in _tensors(sample) if t.is_floating_point() and t.numel()]
    yield _numbered(sample, floats, positive=False)
    yield _numbered(sample, floats, positive=True)
    for places in (0, 1, 2):
        yield _with_tensors(
            sample,
            partial(_rounded, places),
        )


def _rounded(places: int, tensor: torch.Tensor) -> torch.Tensor:
    return torch.round(tensor.detach(), decimals=places) if tensor.is_floating_point() else tensor


def _numbered(sample: Sample, chosen: list[torch.Tensor], *, positive: bool) -> Sample:
    wanted = {id(t): k for k, t in enumerate(chosen)}

    def numbered(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in wanted:
            return tensor
        first = wanted[id(tensor)]
        count = tensor.numel()
        flat = [_SIMPLE[(first + k) % len(_SIMPLE)] for k in range(count)]
        made = torch.tensor(flat, dtype=torch.float64).reshape(tensor.shape)
        return (made.abs() if positive else made).to(tensor.dtype)

    return _with_tensors(sample, numbered)
