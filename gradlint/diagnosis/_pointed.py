"""Say which argument tells the wrong elements from the right ones: a label, an index, a mask."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from gradlint.diagnosis._arguments import is_index
from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.evidence import MOST_CHANCE, Evidence, wrong_and_right

#: Values of an integer tensor that are looked at one by one: classes, segments, an index to ignore.
MOST_VALUES = 8


def pointed_cause(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """The label, index or mask whose elements are exactly those that are wrong; None if there is
    none, or if it may be due to chance.

    A term that backward lacks for the target class, or for what is masked out, makes exactly these
    elements wrong, whatever their values are.

    Args:
        evidence: with the same elements measured under independent cotangents, or none measured.
        name: name of the input whose gradient is examined.
    """
    known = wrong_and_right(evidence)
    if known is None:
        return None
    first, wrong, right = known
    bad, count = int(wrong.sum()), int((wrong | right).sum())
    found = list(_told_apart(first))
    if not 0 < bad < count or math.comb(count, bad) < 2 * len(found) / MOST_CHANCE:
        return None
    for there, where, elsewhere in found:
        chosen = there.expand(first.own.shape).reshape(-1)[first.elements]
        for pick, words in ((chosen, where), (~chosen, elsewhere)):
            if bool((wrong & ~pick).any()) or bool((right & pick).any()):
                continue
            return Cause(
                "pointed-at",
                f"pointed-at: wrong for the {bad} of {count} elements of `{name}` {words}, "
                "right for the others",
                f"compare forward and backward for elements {words}: backward may lack a term of "
                "forward there, or apply it elsewhere",
            )
    return None


def _told_apart(item: Evidence) -> Iterator[tuple[torch.Tensor, str, str]]:
    """For each argument that can tell elements of the gradient apart: which, as a mask that
    broadcasts to its shape, and words for them and for the others."""
    shape = tuple(item.own.shape)
    for name, value in item.arguments.items():
        if not isinstance(value, torch.Tensor) or not value.numel() > 1:
            continue
        if value.dtype == torch.bool and value.layout == torch.strided:
            for mask in _laid(value.detach().cpu(), shape):
                yield mask, f"where `{name}` is True", f"where `{name}` is False"
        elif is_index(value):
            index = value.detach().cpu().to(torch.int64)
            for axis in range(len(shape)):
                yield from _pointed(index, shape, axis, name)
            values = index.unique().tolist()
            for number in values if len(values) <= MOST_VALUES else ():
                for mask in _laid(index == number, shape):
                    yield mask, f"where `{name}` is {number}", f"where `{name}` is not {number}"


def _laid(mask: torch.Tensor, shape: tuple[int, ...]) -> Iterator[torch.Tensor]:
    """``mask`` as it may lie in ``shape``: broadcast, or over the first axes."""
    after = mask.reshape(*mask.shape, *(1,) * max(len(shape) - mask.dim(), 0))
    for form in (mask, after) if after.shape != mask.shape else (mask,):
        if form.dim() <= len(shape) and all(
            have in (1, size) for have, size in zip(form.shape[::-1], shape[::-1], strict=False)
        ):
            yield form


def _pointed(
    index: torch.Tensor, shape: tuple[int, ...], axis: int, name: str
) -> Iterator[tuple[torch.Tensor, str, str]]:
    """What ``index`` points at along one axis: one element of each line, as labels do, or rows."""
    size = shape[axis]
    others = shape[:axis] + shape[axis + 1 :]
    inside = (index >= -size) & (index < size)
    index = torch.where(index < 0, index + size, index)
    if tuple(index.shape) == others:
        mask = torch.zeros(shape, dtype=torch.bool)
        put = torch.where(inside, index, 0).unsqueeze(axis)
        mask.scatter_(axis, put, inside.unsqueeze(axis))
        yield mask, f"that `{name}` points at", f"that `{name}` does not point at"
    elif index.dim() == 1 and bool(inside.all()):
        rows = torch.zeros(size, dtype=torch.bool)
        rows[index] = True
        lying = rows.reshape([size if k == axis else 1 for k in range(len(shape))])
        yield lying, f"that `{name}` names", f"that `{name}` does not name"
