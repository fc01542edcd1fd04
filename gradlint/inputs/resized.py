"""Samples of other sizes, derived from a sample that runs.

Axes of one size belong together, unless forward says otherwise, and a size that follows from others
changes with them. New slices of floating tensors mix
the elements of old ones with weights between 0 and 1, which keeps values positive, in the unit
interval, and away from ties; rows that sum to one sum to one again, unit vectors stay unit vectors,
vectors of length below one are no longer than they were,
zeros and ones stay such, signs too, symmetric matrices stay symmetric, positive definite ones
positive definite, skew-symmetric, triangular and orthogonal ones of their kind, and contractions
such. New slices of integers repeat old ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradlint.inputs.bounds import kept
from gradlint.inputs.unlike import made_unlike, some_alike
from gradlint.inputs.values import turning
from gradlint.model.related import Axis
from gradlint.model.sample import Sample, map_tensors

#: Relative deviation up to which sums of rows count as equal, and matrices as symmetric (heuristic:
#: roundings of float32).
SAME = 1e-5

#: New elements are smaller by up to this share, so that those of a single old slice differ too
#: (heuristic: far from ties, and within any domain that contains zero).
SHRINK = 0.2

#: Logarithm of 1 / the probability from which on an order is none by chance: that of four numbers
#: (heuristic).
NO_CHANCE = math.log(23.9)


def tensors_of(sample: Sample) -> list[torch.Tensor]:
    """The tensors of ``sample``, each once, in the order of the arguments."""
    found: dict[int, torch.Tensor] = {}
    for _, tensor in sample.named_tensors(None):
        found.setdefault(id(tensor), tensor)
    return list(found.values())


def resizable(sample: Sample) -> bool:
    """Whether every tensor is an ordinary strided one."""
    return all(t.layout == torch.strided and not t.is_nested for t in tensors_of(sample))


def tied_axes(sample: Sample) -> dict[int, list[Axis]]:
    """Size → the axes that have it, in the order of the arguments; sizes of at least 2, without the
    axes that are held, or whose size follows from others. A list of several tensors keeps its
    length, and so does an axis of another tensor that is as long: one weight for each of them."""
    found: dict[int, list[Axis]] = {}
    kept = sample.held | {item.axis for item in sample.related}
    groups = [group for group in _groups_of(sample) if len(group) >= 2]
    for number, tensor in enumerate(tensors_of(sample)):
        counted = {len(group) for group in groups if id(tensor) not in group}
        for axis, size in enumerate(tensor.shape):
            if size >= 2 and size not in counted and (number, axis) not in kept:
                found.setdefault(size, []).append((number, axis))
    return found


def _groups_of(sample: Sample) -> list[set[int]]:
    """The lists and tuples of tensors among the arguments, as the ids of these."""
    return [
        {id(item) for item in value}
        for value in (*sample.args, *sample.kwargs.values())
        if isinstance(value, (list, tuple))
        and all(isinstance(item, torch.Tensor) for item in value)
    ]


def resized(
    sample: Sample,
    change: Mapping[Axis, int],
    *,
    seed: int,
    integers: Mapping[int, int] | None = None,
) -> Sample | None:
    """``sample`` with other sizes along some axes; None where an index would point to nothing.

    Args:
        change: axis → its new size.
        seed: of the values of new slices.
        integers: old → new for integer arguments, also those in tuples and lists (sizes that are
            passed along with the tensors).
    """
    generator = torch.Generator().manual_seed(seed)
    change = {**_following(sample, change), **change}
    if min(change.values(), default=0) < 0:
        return None
    sizes = _sizes(sample, change)
    lost = False

    def convert(number: int, tensor: torch.Tensor) -> torch.Tensor:
        nonlocal lost
        found = tensor
        for axis in range(tensor.dim()):
            if (number, axis) in change:
                found = _along(found, axis, change[number, axis], generator)
        found = _in_domain(found, tensor)
        if number in sample.increasing and found.dim():
            found = found.sort(-1).values
        pointing = _pointing(found, tensor, sizes)
        lost = lost or pointing is None
        return found if pointing is None else pointing

    made = _each(sample, convert)
    if lost:
        return None
    args, kwargs = _with_integers((made.args, made.kwargs), integers or {})
    found = within_bounds(replace(made, args=args, kwargs=kwargs))
    if alike_where_unlike(found):
        found = _unlike_again(found, generator)
    return None if alike_where_unlike(found) else found


def in_shape(tensor: torch.Tensor, shape: Sequence[int], *, seed: int) -> torch.Tensor:
    """``tensor`` with other sizes along its axes, of which it has as many."""
    generator = torch.Generator().manual_seed(seed)
    found = tensor.detach()
    for axis, size in enumerate(shape):
        found = _along(found, axis, size, generator)
    return _in_domain(found, tensor.detach())


def _unlike_again(sample: Sample, generator: torch.Generator) -> Sample:
    """``sample`` with other integers where some are alike that never are."""
    known = dict(sample.unlike)

    def convert(number: int, tensor: torch.Tensor) -> torch.Tensor:
        which = known.get(number, "")
        if which == "permutation" and some_alike(tensor, which):
            return tensor.argsort(dim=-1, stable=True)
        return made_unlike(tensor, which, generator) if which else tensor

    return _each(sample, convert)


def alike_where_unlike(sample: Sample) -> bool:
    """Whether integers of ``sample`` are alike that never are, as documentation says."""
    tensors = tensors_of(sample)
    return any(some_alike(tensors[number], which) for number, which in sample.unlike)


def _following(sample: Sample, change: Mapping[Axis, int]) -> dict[Axis, int]:
    """The sizes that follow from those that change: where all axes of one size do."""
    tensors = tensors_of(sample)
    found = {}
    for item in sample.related:
        new = [
            {change.get((number, axis), tensors[number].shape[axis]) for number, axis in base}
            for base in item.bases
        ]
        if all(len(sizes) == 1 for sizes in new):
            found[item.axis] = item.formula.at([size for sizes in new for size in sizes])
    number_of = {axis: tensors[axis[0]].shape[axis[1]] for axis in found}
    return {axis: size for axis, size in found.items() if size != number_of[axis]}


def within_bounds(sample: Sample) -> Sample:
    """``sample`` with values that keep its bounds between tensors, and those up to a size. Those
    between a tensor and a number are left: what was put beyond them was put there on purpose, such
    as a label that stands for none."""
    bounds = tuple(b for b in sample.bounds if None not in (b.less.of, b.more.of))
    if not bounds:
        return sample
    tensors = tensors_of(sample)
    changed = {
        id(tensors[number]): value
        for number, value in kept(bounds, dict(enumerate(tensors))).items()
    }

    def convert(tensor: torch.Tensor) -> torch.Tensor:
        return changed.get(id(tensor), tensor)

    args, kwargs = map_tensors((sample.args, sample.kwargs), convert)
    return replace(sample, args=args, kwargs=kwargs) if changed else sample


def repeats_indices(before: Sample, after: Sample) -> bool:
    """Whether integers that are distinct ``before``, all of them or along an axis, are repeated
    ``after``: the result of an op may be undefined for repeated indices."""
    for old, new in zip(tensors_of(before), tensors_of(after), strict=True):
        if old.is_floating_point() or old.is_complex() or old.dtype == torch.bool:
            continue
        if old.numel() > 1 and _distinct(old.reshape(-1), 0) and not _distinct(new.reshape(-1), 0):
            return True
        for axis in range(min(old.dim(), new.dim())):
            if old.shape[axis] > 1 and _distinct(old, axis) and not _distinct(new, axis):
                return True
    return False


def _distinct(tensor: torch.Tensor, axis: int) -> bool:
    ordered = tensor.sort(axis).values
    return bool((ordered.diff(dim=axis) != 0).all())


def with_integers_of(before: Sample, after: Sample) -> Sample | None:
    """``after`` with the values that tensors of integers have ``before``, repeated where there are
    more; None where none differs."""
    old = tensors_of(before)
    changed = False

    def put_back(number: int, tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        like = old[number]
        if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
            return tensor
        if tensor.dim() != like.dim() or not like.numel():
            return tensor
        found = like
        for axis, size in enumerate(tensor.shape):
            which = torch.arange(size, device=like.device) % like.shape[axis]
            found = found.index_select(axis, which)
        changed |= not torch.equal(found, tensor)
        return found

    made = _each(after, put_back)
    return made if changed else None


def without_dimensions(sample: Sample) -> Sample:
    """``sample`` with one element of every tensor, of median size, as a tensor of no dimensions."""

    def one(_: int, tensor: torch.Tensor) -> torch.Tensor:
        flat = tensor.reshape(-1)
        if not flat.numel():
            return tensor.new_zeros(())
        sizes = flat.abs() if tensor.is_floating_point() or tensor.is_complex() else flat
        return flat[sizes.argsort()[flat.numel() // 2]]

    return _each(sample, one)


def with_leading_axis(sample: Sample, numbers: Collection[int], size: int, *, seed: int) -> Sample:
    """``sample`` with an axis of ``size`` in front of the tensors ``numbers``."""
    generator = torch.Generator().manual_seed(seed)

    def more(number: int, tensor: torch.Tensor) -> torch.Tensor:
        if number not in numbers:
            return tensor
        return _in_domain(_along(tensor.unsqueeze(0), 0, size, generator), tensor)

    return _each(sample, more)


def with_trailing_axis(sample: Sample, numbers: Collection[int], size: int, *, seed: int) -> Sample:
    """``sample`` with an axis of ``size`` behind those of the tensors ``numbers``."""
    generator = torch.Generator().manual_seed(seed)

    def more(number: int, tensor: torch.Tensor) -> torch.Tensor:
        if number not in numbers:
            return tensor
        return _in_domain(_along(tensor.unsqueeze(-1), tensor.dim(), size, generator), tensor)

    return _each(sample, more)


def trailing_slice_of(sample: Sample, numbers: Collection[int], position: int) -> Sample:
    """``sample`` with only the slice at ``position`` along the last axis of the tensors
    ``numbers``."""

    def one(number: int, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.select(-1, position) if number in numbers else tensor

    return _each(sample, one)


def without_leading_axis(sample: Sample, numbers: Collection[int]) -> Sample:
    """``sample`` with only the first slice of the tensors ``numbers``."""
    return slice_of(sample, numbers, 0)


def slice_of(sample: Sample, numbers: Collection[int], position: int) -> Sample:
    """``sample`` with only the slice at ``position`` of the tensors ``numbers``."""

    def first(number: int, tensor: torch.Tensor) -> torch.Tensor:
        if number not in numbers:
            return tensor
        return tensor[position] if len(tensor) else tensor.new_empty(tensor.shape[1:])

    return _each(sample, first)


def _each(sample: Sample, convert: Callable[[int, torch.Tensor], torch.Tensor]) -> Sample:
    """``sample`` with ``convert(number, detached tensor)`` in place of every tensor."""
    numbers = {id(tensor): number for number, tensor in enumerate(tensors_of(sample))}

    def place(tensor: torch.Tensor) -> torch.Tensor:
        found = convert(numbers[id(tensor)], tensor.detach())
        copy = found.clone(memory_format=torch.contiguous_format)
        return copy.requires_grad_(tensor.requires_grad)

    args, kwargs = map_tensors((sample.args, sample.kwargs), place)
    return replace(sample, args=args, kwargs=kwargs)


def _along(tensor: torch.Tensor, axis: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """``tensor`` with ``size`` slices along ``axis``: its first ones, or more than it has."""
    old = tensor.shape[axis]
    if size <= old:
        return tensor.narrow(axis, 0, size)
    if not tensor.numel():
        return tensor.new_zeros((*tensor.shape[:axis], size, *tensor.shape[axis + 1 :]))

    if tensor.is_floating_point() or tensor.is_complex():
        one = _mixed(tensor, axis, size - old, generator)
    else:
        # The same slices of every tensor: both ends of an edge stay together.
        paired = torch.Generator().manual_seed(old)
        one = _slices(tensor, axis, torch.randint(old, (size - old,), generator=paired))
    return torch.cat([tensor, one], axis)


def _mixed(tensor: torch.Tensor, axis: int, count: int, generator: torch.Generator) -> torch.Tensor:
    """``count`` slices between the old ones: each of two different ones, if there are two. One
    that is zero, mixed with itself, would be there twice: two atoms in one place."""
    old = tensor.shape[axis]
    first = torch.randint(old, (count,), generator=generator)
    step = torch.randint(1, max(old, 2), (count,), generator=generator)
    one, other = (_slices(tensor, axis, which % old) for which in (first, first + step))
    real = torch.float32 if tensor.dtype.itemsize < 8 else torch.float64

    def weights() -> torch.Tensor:
        return torch.rand(one.shape, generator=generator, dtype=real).to(tensor.device)

    share = weights()
    mixed = share * one + (1.0 - share) * other
    return (mixed * (1.0 - SHRINK * weights())).to(tensor.dtype)


def _slices(tensor: torch.Tensor, axis: int, which: torch.Tensor) -> torch.Tensor:
    return tensor.index_select(axis, which.to(tensor.device))


def _in_domain(found: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """``found`` with values, sums of rows, or as a matrix, of the kind that ``before`` is."""
    if not before.is_floating_point() or not before.numel() or not found.numel():
        return found
    square = before.dim() >= 2 and before.shape[-1] == before.shape[-2] > 1
    kinds: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor | None]] = [_of_two_values]
    kinds += [_as_rows] if before.dim() and before.shape[-1] > 1 else []
    kinds += [_as_matrix] if square and found.shape[-1] == found.shape[-2] else []
    kinds += [_as_unit, _as_short] if before.dim() and before.shape[-1] > 1 else []
    made = next((made for kind in kinds if (made := kind(found, before)) is not None), found)
    return made if square else _in_order(made, before)


def _in_order(found: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Knots, times and the ends of intervals in the order that they have ``before`` along the last
    axis, or in a column, if that is no chance."""
    axes = [
        k for k in range(before.dim()) if k == before.dim() - 1 or before.shape[k] == before.numel()
    ]
    for axis in axes:
        for descending in (False, True):
            steps = -before.diff(dim=axis) if descending else before.diff(dim=axis)
            rising = (steps > 0).sum(axis)
            by_chance = torch.lgamma(rising.double() + 2.0).sum()  # log of 1 / its probability
            if bool((steps >= 0).all()) and float(by_chance) >= NO_CHANCE:
                return found.sort(axis, descending=descending).values
    return found


def _of_two_values(found: torch.Tensor, before: torch.Tensor) -> torch.Tensor | None:
    """Zeros and ones, or signs, if both occur ``before`` and nothing else does."""
    first = before.reshape(-1)[0]
    if before.numel() < 2 or not bool((before != first).any()):
        return None
    if bool(((before == 0) | (before == 1)).all()):
        return (found > 0.5).to(found.dtype)
    if bool((before.abs() == 1).all()):
        return torch.where(found < 0, -1.0, 1.0).to(found.dtype)
    return None


def _as_rows(found: torch.Tensor, before: torch.Tensor) -> torch.Tensor | None:
    """Rows of one sum; a single one is a row of anything, unless its sum is one."""
    if not bool((before >= 0).all()):
        return None
    sums = before.sum(-1)
    if sums.numel() == 1 and abs(sums.item() - 1.0) > SAME:
        return None
    if bool(sums.min() > 0) and bool((sums - sums.mean()).abs().max() <= SAME * sums.mean()):
        return found / found.sum(-1, keepdim=True) * sums.mean()
    return None


def _as_unit(found: torch.Tensor, before: torch.Tensor) -> torch.Tensor | None:
    """Unit vectors along the last axis."""
    if bool((before.norm(dim=-1) - 1.0).abs().max() <= SAME):
        return found / found.norm(dim=-1, keepdim=True)
    return None


def _as_short(found: torch.Tensor, before: torch.Tensor) -> torch.Tensor | None:
    """Vectors of length below one along the last axis: the length of vectors whose elements do not
    shrink grows with the root of their number."""
    longest = before.norm(dim=-1).max()
    if not bool(0.0 < longest < 1.0):
        return None  # nothing but zeros has no length to keep
    norms = found.norm(dim=-1, keepdim=True)
    return found * (longest / norms).clamp(max=1.0)


def _as_matrix(found: torch.Tensor, before: torch.Tensor) -> torch.Tensor | None:
    """Triangular, symmetric, skew-symmetric and orthogonal matrices."""
    negligible = SAME * before.abs().max()
    eye = torch.eye(before.shape[-1], dtype=before.dtype, device=before.device)
    made = None
    if not bool(before.triu(1).any()):
        made = _as_triangular(found, before)
    elif not bool(before.tril(-1).any()):
        made = _as_triangular(found.mT, before.mT).mT
    elif bool((before - before.mT).abs().max() <= negligible):
        made = _as_definite((found + found.mT) / 2, before)
    elif bool((before + before.mT).abs().max() <= negligible):
        made = (found - found.mT) / 2
    elif bool((before @ before.mT - eye).abs().max() <= SAME):
        made = torch.linalg.qr(found.double()).Q
        if bool((torch.linalg.det(before.double()) > 0).all()):
            made = turning(made)
        made = made.to(found.dtype)
    else:
        made = _as_contraction(found, before)
    return made


def _as_contraction(found: torch.Tensor, before: torch.Tensor) -> torch.Tensor | None:
    """Matrices that make no vector longer than those ``before`` do, where these make all of them
    shorter: forward may iterate with such a matrix, and only then comes to an end. The norm of a
    matrix of independent elements grows with the root of their number."""
    largest = torch.linalg.matrix_norm(before.double(), ord=2).max()
    if not bool(largest < 1.0):
        return None
    norms = torch.linalg.matrix_norm(found.double(), ord=2, keepdim=True)
    return found * (largest / norms).clamp(max=1.0).to(found.dtype)


def _as_triangular(found: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Lower triangular matrices that are about as well conditioned as those ``before``.

    The condition of triangular matrices with elements of one size grows exponentially with their
    number (Viswanath and Trefethen, 1998): the diagonal is repeated, and elements below it become
    smaller as their number grows.
    """
    old, new = before.shape[-1], found.shape[-1]
    repeated = torch.arange(new, device=found.device) % old
    diagonal = found.diagonal(dim1=-2, dim2=-1)[..., repeated]
    return found.tril(-1) * min(1.0, old / new) + torch.diag_embed(diagonal)


def _as_definite(found: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Symmetric matrices, made positive definite where those ``before`` are."""
    lowest = torch.linalg.eigvalsh(before.double()).min()
    if not bool(lowest > 0):
        return found
    below = torch.linalg.eigvalsh(found.double()).min().clamp(max=0.0)
    eye = torch.eye(found.shape[-1], dtype=found.dtype, device=found.device)
    return found + (lowest - below).to(found.dtype) * eye


def _sizes(sample: Sample, change: Mapping[Axis, int]) -> dict[int, int]:
    """Old size → new size, the smallest where there are several."""
    tensors = tensors_of(sample)
    found: dict[int, int] = {}
    for (number, axis), size in change.items():
        old = tensors[number].shape[axis]
        found[old] = min(size, found.get(old, size))
    return found


def _pointing(
    found: torch.Tensor, before: torch.Tensor, sizes: Mapping[int, int]
) -> torch.Tensor | None:
    """Integers that may be indices into axes of the old ``sizes``, as indices into the new ones;
    None where those are empty. A largest value equal to a size is an end, not an index."""
    integer = not (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool)
    if not integer or not found.numel():
        return found
    if before.dim() == 1 and not before[0] and bool((before.diff() >= 0).all()):
        found = found.sort().values  # offsets
    top = int(before.max())
    for old, new in sizes.items():
        if top == old:
            found = torch.where(found == old, torch.full_like(found, new), found).clamp(max=new)
        elif top < old and new < old:
            if not new:
                return None
            found = found.clamp(max=new - 1)
    return found


def _with_integers(value: Any, integers: Mapping[int, int]) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return integers.get(value, value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_with_integers(part, integers) for part in value))
    if isinstance(value, torch.Size):
        return torch.Size(_with_integers(part, integers) for part in value)
    if isinstance(value, (list, tuple)):
        return type(value)(_with_integers(part, integers) for part in value)
    if isinstance(value, dict):
        return {key: _with_integers(part, integers) for key, part in value.items()}
    return value
