"""Causes that the values of arguments show: a factor that is one of them, a repeated index."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from gradlint.diagnosis._hypothesis import Hypothesis
from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.evidence import MOST_CHANCE, Evidence, wrong_and_right
from gradlint.numerics.products import widened

#: Integer tensors with more elements, or that name more rows, are not read as indices (heuristic:
#: what is measured element by element is far smaller).
MOST_INDICES = 2**16

#: Rows named in words.
SHOWN = 6


def numbers(arguments: Mapping[str, Any]) -> dict[str, float]:
    """The arguments that are single numbers, bools left out: name → value."""
    found = {}
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_complex():
            value = None if value.dtype == torch.bool else value.item()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            found[name] = float(value)
    return found


#: In the names of arguments that say by what a sum is divided.
_REDUCTIONS = ("reduc", "average", "mean", "norm", "aggr")


def reductions(arguments: Mapping[str, Any]) -> str:
    """The names among the arguments on which a size or a count in a gradient depends, as they are
    passed: ``reduction='mean'``."""
    return ", ".join(
        f"{name}={value!r}"
        for name, value in arguments.items()
        if isinstance(value, str) and any(word in name.lower() for word in _REDUCTIONS)
    )


def counts(arguments: Mapping[str, Any]) -> Iterator[tuple[int, str, str]]:
    """Counts in masks and index tensors: the number, an expression, and what it is in words."""
    for name, value in arguments.items():
        if not isinstance(value, torch.Tensor) or value.numel() < 2:
            continue
        if value.dtype == torch.bool:
            yield int(value.sum()), f"{name}.sum()", f"the number of True in `{name}`"
            yield int((~value).sum()), f"(~{name}).sum()", f"the number of False in `{name}`"
        elif is_index(value):
            unique = int(value.unique().numel())
            yield unique, f"len({name}.unique())", f"the number of different values in `{name}`"


def shares(arguments: Mapping[str, Any]) -> Iterator[tuple[int, int, str, str]]:
    """What counts among the elements of a tensor: the number of all, of those that count, an
    expression for the latter, and what they are in words. Elements count where a mask is True, or
    where labels differ from a whole number among the arguments, as from ``ignore_index``."""
    whole = {k: v for k, v in numbers(arguments).items() if v.is_integer()}
    for name, value in arguments.items():
        if not isinstance(value, torch.Tensor) or value.numel() < 2:
            continue
        if value.dtype == torch.bool:
            kept = int(value.sum())
            yield value.numel(), kept, f"{name}.sum()", f"True in `{name}`"
        elif is_index(value):
            for other, number in whole.items():
                kept = int((value != number).sum())
                words = f"other than `{other}` in `{name}`"
                yield value.numel(), kept, f"({name} != {other}).sum()", words


def factors(item: Evidence, name: str) -> Iterator[Hypothesis]:
    """The returned gradient times, or divided by, a tensor argument, or how often an index names
    a row."""
    own = item.own
    for shown, value in _tensors(item):
        if value.numel() < 2 or not _fits(value, tuple(own.shape)):
            continue
        if bool((value == value.reshape(-1)[0]).all()):
            continue
        for sign, mark in ((1.0, ""), (-1.0, "-")):
            yield _times(name, f"{mark}{shown}", partial(_multiplied, sign * value))
        if bool((value != 0).all()):
            yield _times(name, f"1/{shown}", partial(_multiplied, 1.0 / value))


def _times(
    name: str, shown: str, candidate: Callable[[Evidence], torch.Tensor | None]
) -> Hypothesis:
    return Hypothesis(
        "scaled",
        f"the returned gradient times {shown} agrees",
        f"multiply the gradient of `{name}` by {shown}",
        candidate,
    )


def _multiplied(value: torch.Tensor, item: Evidence) -> torch.Tensor:
    return widened(item.own) * value.to(item.own.device)


def _tensors(item: Evidence) -> Iterator[tuple[str, torch.Tensor]]:
    """Real tensors that a gradient may have to be multiplied by, and how they are written."""
    for name, value in zip(item.names, item.values, strict=False):
        if not value.is_complex():
            yield name, widened(value)
    for name, value in item.arguments.items():
        if (
            not isinstance(value, torch.Tensor)
            or value.is_complex()
            or value.layout != torch.strided
        ):
            continue
        if value.dtype == torch.bool:
            yield name, value.double()
        elif value.is_floating_point():
            yield name, widened(value)
    for name, _, found, shared in _row_counts(item):
        of_each = f"[{name}]" if shared else ""
        yield f"{name}.bincount(){of_each}", found.clamp(min=1).double()


def _fits(value: torch.Tensor, shape: tuple[int, ...]) -> bool:
    try:
        return torch.broadcast_shapes(tuple(value.shape), shape) == shape
    except RuntimeError:
        return False


def is_index(value: Any) -> bool:
    """Whether ``value`` can be a tensor of indices or labels."""
    return (
        isinstance(value, torch.Tensor)
        and value.dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
        and value.layout == torch.strided
        and 1 < value.numel() <= MOST_INDICES
    )


def _row_counts(item: Evidence) -> Iterator[tuple[str, int, torch.Tensor, bool]]:
    """How often each integer tensor names the rows of each axis that it may be an index into: its
    name, the axis, and counts that broadcast to the gradient's shape; then, how many of an axis
    share the number that it gives each of them, as the segments of a sum do (True)."""
    shape = tuple(item.own.shape)
    for name, value in item.arguments.items():
        if not is_index(value):
            continue
        flat = value.detach().cpu().to(torch.int64)
        for axis, size in enumerate(shape):
            if size < 2 or int(flat.min()) < -size or int(flat.max()) >= size:
                continue
            index = torch.where(flat < 0, flat + size, flat)
            if index.dim() == len(shape) > 1 and _below(index, shape, axis):
                found = torch.zeros(shape, dtype=torch.int64)
                found.scatter_add_(axis, index, torch.ones_like(index))
                yield name, axis, found, False
            broadcast = [size if k == axis else 1 for k in range(len(shape))]
            found = torch.bincount(index.reshape(-1), minlength=size)
            yield name, axis, found.reshape(broadcast), False
            if index.numel() == size:
                yield name, axis, found[index.reshape(-1)].reshape(broadcast), True


def _below(index: torch.Tensor, shape: tuple[int, ...], axis: int) -> bool:
    pairs = enumerate(zip(index.shape, shape, strict=True))
    return all(k == axis or have <= most for k, (have, most) in pairs)


def repeated_index(
    evidence: Sequence[Evidence], name: str, *, by_chance: bool = False
) -> Cause | None:
    """The cause that only what an index names more than once is wrong: it was assigned where it
    should have been added up.

    Args:
        by_chance: whether it may be told of so few elements that this could be chance.
    """
    known = wrong_and_right(evidence)
    if known is None:
        return None
    first, wrong, right = known
    bad, count = int(wrong.sum()), int((wrong | right).sum())
    found = list(_row_counts(first))
    if not bad:
        return None
    if not by_chance and (bad == count or math.comb(count, bad) < len(found) / MOST_CHANCE):
        return None
    for index, axis, times, shared in found:
        repeated = (times > 1).expand(first.own.shape).reshape(-1)[first.elements]
        if bool((wrong & ~repeated).any()) or bool((right & repeated).any()) or repeated.all():
            continue
        return Cause(
            "repeated-index",
            f"repeated-index: only what {_named_twice(index, shared=shared)} is wrong in `{name}`"
            f"{_rows(times, axis)}",
            "add up what repeated indices contribute: index_add_, scatter_add_ or "
            f"index_put_(…, accumulate=True){'' if shared else f' for `{name}`'}, in place of an "
            "assignment",
        )
    return None


def _named_twice(index: str, *, shared: bool) -> str:
    return f"shares its `{index}` with others" if shared else f"`{index}` names more than once"


def _rows(times: torch.Tensor, axis: int) -> str:
    if times.numel() != times.shape[axis]:
        return ""
    rows = (times.reshape(-1) > 1).nonzero().reshape(-1).tolist()
    more = ", …" if len(rows) > SHOWN else ""
    word = "index" if len(rows) == 1 else "indices"
    return f": {word} {', '.join(map(str, rows[:SHOWN]))}{more} along axis {axis}"
