"""Further samples with other indices: some that repeat, and some below zero."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

import torch

from gradlint.inputs import _names
from gradlint.inputs._source import plain_function, syntax
from gradlint.inputs.designed import (
    Designed,
    domain_of,
    exchanged,
    replaced,
)
from gradlint.inputs.documentation import (
    documented_from_one,
    documented_from_zero,
)
from gradlint.inputs.handed_on import prose_about
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.targets.source_file import literal

#: Bounds of segments, at least: those of two.
LEAST_BOUNDS = 3

#: Members of a tuple of indices, at most: the four atoms of a torsion.
MOST_MEMBERS = 4


def other_indices(
    op: Op, sample: Sample, *, repeat: bool, from_the_end: bool
) -> Iterator[Designed]:
    """``sample`` with other indices.

    Args:
        repeat: whether an index may occur twice.
        from_the_end: whether indices below zero may be tried.
    """
    if repeat:
        yield from _grouped_otherwise(op, sample)
    for name, tensor in sample.named_tensors(op.signature):
        if domain_of(sample, name) != "indices" or tensor.numel() < 2:
            continue
        if _names.permutes(name):
            # Each position once, in an order that is not its own inverse.
            if tensor.shape[-1] > 2:
                turned = torch.arange(tensor.shape[-1]).roll(1).expand_as(tensor)
                yield replaced(sample, tensor, turned, f"where `{name}` is another order")
            continue
        if repeat:
            axis = _axis_of_tuples(tensor, alike=indexes_one(op, name))
            yield from _crowded(sample, name, tensor, axis, _kept_apart(op, sample, tensor))
        said = prose_about(op, name)
        least = documented_from_zero(said, name) or documented_from_one(said, name)
        if from_the_end and not least and int(tensor.max()) >= 1 and int(tensor.min()) >= 0:
            mixed = _every_other_negative(tensor, alike=indexes_one(op, name))
            yield replaced(sample, tensor, mixed, f"where `{name}` has negative indices")


#: How documentation says that no segment is empty.
_NONE_EMPTY = re.compile(
    r"(?i)\bnon-?empty\b|\b(?:not|never|no|none)\b[^.;\n]{0,24}\bempty\b|\bat least one\b"
    r"|\bstrictly (?:increasing|ascending|monoton)"
)


def with_empty_segment(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with an empty segment, where a row of integers says from which place of an axis to
    which the segments go, ``0, 2, 5, 6``, and documentation does not say that none is empty."""
    named = list(sample.named_tensors(op.signature))
    sizes = {size for _, t in named if t.is_floating_point() for size in t.shape}
    for name, tensor in named:
        counts = tensor.dtype in (torch.int64, torch.int32)
        if not counts or tensor.dim() != 1 or len(tensor) < LEAST_BOUNDS:
            continue
        bounds = tensor.tolist()
        rises = bounds[0] == 0 and all(low < high for low, high in itertools.pairwise(bounds))
        if not rises or bounds[-1] not in sizes or bounds == list(range(len(bounds))):
            continue
        if _NONE_EMPTY.search(prose_about(op, name)):
            continue
        middle = len(bounds) // 2
        moved = tensor.clone()
        moved[middle] = bounds[middle - 1]
        yield replaced(sample, tensor, moved, f"where a segment of `{name}` is empty", "special")


def _every_other_negative(tensor: torch.Tensor, *, alike: bool) -> torch.Tensor:
    """``tensor`` with every other index counted from the end; of tuples all members, so that they
    stay unequal where they were."""
    counted = torch.arange(tensor.numel(), device=tensor.device).reshape(tensor.shape)
    axis = _axis_of_tuples(tensor, alike=alike)
    if axis is not None:
        counted = torch.arange(tensor.shape[1 - axis], device=tensor.device).unsqueeze(axis)
    return torch.where(counted % 2 == 0, tensor, tensor - int(tensor.max()) - 1).reshape(-1)


def _grouped_otherwise(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with edges that have no other grouping by their targets where they have the same
    by their sources: there, what is summed over the one is summed over the other as well. Edges
    are the rows or columns of one tensor, or two tensors beside each other."""
    found = [
        (name, tensor)
        for name, tensor in sample.named_tensors(op.signature)
        if domain_of(sample, name) == "indices" and tensor.numel() >= 2
    ]
    for name, tensor in found:
        if tensor.dim() == 2 and 2 in tensor.shape:
            ends = tensor if tensor.shape[0] == 2 else tensor.t()
            other = _other_edges(ends[0], ends[1])
            if other is not None:
                made = other if tensor.shape[0] == 2 else other.t()
                label = f"where `{name}` has other targets for one source"
                yield replaced(sample, tensor, made, label)
    for (one, first), (two, second) in itertools.combinations(found, 2):
        if first.dim() == second.dim() == 1 and first.shape == second.shape:
            other = _other_edges(first, second)
            if other is not None:
                changed = {id(first): other[0], id(second): other[1]}
                label = f"where `{two}` differs for one `{one}`"
                yield Designed(exchanged(sample, changed, label, "same"), {})


def _other_edges(sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor | None:
    """Two rows: edges from 0 to 1, from 0 to 2, from 1 to 2, and so on; None where both already
    group the edges differently, or where there are too few of them or of what they point to."""
    # Both may point into one axis: then they reach about as far.
    low, high = sorted((int(sources.max()), int(targets.max())))
    if len(sources) < 3 or low < 1 or high < 2 or min(sources.min(), targets.min()) < 0:
        return None
    if _grouping(sources) != _grouping(targets):
        return None
    edges = torch.tensor([[0, 0, 1], [1, 2, 2]], device=sources.device)
    return edges[:, torch.arange(len(sources), device=sources.device) % 3].to(sources.dtype)


def _grouping(indices: torch.Tensor) -> list[int]:
    """For each index the place where it occurs first."""
    values = indices.tolist()
    return [values.index(value) for value in values]


def _crowded(
    sample: Sample, name: str, tensor: torch.Tensor, axis: int | None, others: list[torch.Tensor]
) -> Iterator[Designed]:
    """``sample`` with the first and the last index of a tensor only, and with one only; none of
    them becomes equal to that of ``others`` at its place. ``axis`` is that of tuples, if any."""
    if axis is not None:
        # Whole tuples repeat: edges, bonds, triangles.
        count = tensor.shape[1 - axis]
        ends = torch.where(torch.arange(count) % 2 == 0, 0, count - 1).flip(0)
        twice = tensor.index_select(1 - axis, ends)
        yield replaced(
            sample, tensor, twice, f"where `{name}` repeats the first and the last index"
        )
        once = tensor.narrow(1 - axis, count - 1, 1).expand_as(tensor)
        yield replaced(sample, tensor, once, f"where `{name}` is one index only")
        return
    # Rows may index axes of other sizes, as pairs of a row and a column do.
    highest = tensor.amax(-1, keepdim=True)
    clear = torch.ones_like(tensor, dtype=torch.bool)

    def apart(made: torch.Tensor) -> torch.Tensor:
        for other in others:
            clear.logical_and_(made != other)
        return torch.where(clear, made, tensor)

    if int(highest.max()) >= 2:
        even = torch.arange(tensor.shape[-1]) % 2 == 0
        crowded = torch.where(even, 0, highest).flip(-1).expand_as(tensor)
        label = f"where `{name}` repeats the first and the last index"
        yield replaced(sample, tensor, apart(crowded), label)
    single = highest.expand_as(tensor)
    if all(bool((single != other).all()) for other in others):
        yield replaced(sample, tensor, single, f"where `{name}` is one index only")


def _axis_of_tuples(tensor: torch.Tensor, *, alike: bool) -> int | None:
    """The axis along which a matrix of integers holds tuples whose members are never equal, as the
    corners of triangles are; None where it holds none. ``alike``: whether all members are known to
    index one tensor."""
    if tensor.dim() != 2:
        return None
    for axis in (1, 0):
        ordered = tensor.sort(axis).values
        few = 1 < tensor.shape[axis] <= MOST_MEMBERS < tensor.shape[1 - axis] + 3
        highest = tensor.amax(1 - axis)
        # Members that index one axis reach about as far; a row and a column of a matrix need not.
        # Three and more are unequal in every row for a reason, even where one reaches less far.
        near = int(highest.max() - highest.min()) <= 1 or tensor.shape[axis] > 2
        if few and (alike or near) and bool((ordered.diff(dim=axis) > 0).all()):
            return axis
    return None


def _kept_apart(op: Op, sample: Sample, tensor: torch.Tensor) -> list[torch.Tensor]:
    """Other indices of the same shape that are nowhere equal to ``tensor``: the other ends of
    edges."""
    return [
        other
        for name, other in sample.named_tensors(op.signature)
        if other is not tensor
        and domain_of(sample, name) == "indices"
        and other.shape == tensor.shape
        and bool((other != tensor).all())
    ]


def indexes_one(op: Op, name: str) -> bool:
    """Whether forward indexes one tensor with two members of each of the tuples that ``name``
    holds: ``x[pairs[:, 0]] - x[pairs[:, 1]]``, ``x[i] - x[j]`` after ``i, j = pairs.t()``."""
    function = op.function.forward if op.function is not None else op.call
    if op.module is not None:
        function = type(op.module).forward
    plain = plain_function(function)
    tree = syntax(plain) if plain is not None else None
    if tree is None:
        return False
    unpacked = [
        node.targets[0].elts
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and _holds(node.value, name)
    ]
    members = {ast.unparse(part): place for parts in unpacked for place, part in enumerate(parts)}
    used: dict[str, set[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            member = members.get(ast.unparse(node.slice), _member(node.slice, name))
            if member is not None:
                used.setdefault(ast.unparse(node.value), set()).add(member)
    return any(len(found) > 1 for found in used.values())


def _holds(value: ast.expr, name: str) -> bool:
    """Whether ``value`` is the argument ``name``, or gives its columns."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr in ("t", "unbind") and _holds(value.func.value, name)
    if isinstance(value, ast.Attribute):
        return value.attr in ("T", "mT") and _holds(value.value, name)
    return isinstance(value, ast.Name) and value.id == name


def _member(index: ast.expr, name: str) -> int | None:
    """Which members of the tuples in ``name`` an index is: 0 for ``pairs[:, 0]``; None for what is
    none."""
    if not isinstance(index, ast.Subscript) or not _holds(index.value, name):
        return None
    parts = index.slice.elts if isinstance(index.slice, ast.Tuple) else [index.slice]
    known, place = literal(parts[-1])
    return place if known and type(place) is int else None
