"""What each reference kernel moves, and the share of a copy's bandwidth that it must be good for.

A kernel is in one of two tables: with what it moves and its goal, or exempt, with the reason.
:func:`budget_of` finds it there; one that is in neither has no budget, which the report calls a
fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Least share of a copy's bandwidth: of what goes through dense tensors in vectors, and of views.
DENSE_GOAL, VIEW_GOAL = 0.85, 0.75

#: Why kernels of float64 have no goal.
FLOAT64 = (
    "float64: its functions take many times the instructions of float32, on units that most GPUs "
    "have few of"
)


@dataclass(frozen=True)
class Shape:
    """What is known by its source of a kernel that is bound by memory.

    Args:
        inputs, outputs: tensors that it reads and writes once, element by element.
        packs: whether in accesses of 16 bytes.
        repeats: how often a thread goes through the loop that moves the most, at 2²⁶ elements.
    """

    inputs: int
    outputs: int
    packs: bool = True
    repeats: int = 1


@dataclass(frozen=True)
class Budget:
    """What is asked of a kernel.

    Args:
        shape: what it moves; None where it is bound by something else than memory.
        goal: least share of a copy's bandwidth, or None.
        exempt: why there is no goal; empty where there is one.
    """

    shape: Shape | None
    goal: float | None = None
    exempt: str = ""


_WALKED = (
    "rows that are not held in registers, for their length or because they are not whole vectors, "
    "are read again for each pass"
)

#: Kernels by the beginning of their names (the first that fits): what they move, and why they have
#: no goal, if so. The last number: a team has at least eight rows, a channel's part four rounds
#: (heuristic).
_MEMORY_BOUND = (
    (r"PartialSums<\w+, 2,", Shape(2, 0, repeats=16), ""),
    (r"ByChannel<Normalize<\w+>, false", Shape(1, 1), ""),
    (r"ByChannel<NormalizeBackward<\w+>, false", Shape(2, 1), ""),
    (r"ByChannel<NormalizeBackwardBackward<\w+>, false", Shape(3, 2), ""),
    (r"ChannelRows<Moments<", Shape(1, 0, repeats=4), ""),
    (r"ChannelRows<GradientSums<", Shape(2, 0, repeats=4), ""),
    (r"ChannelRows<SecondSums<", Shape(3, 0, repeats=4), ""),
    (r"LayerNormForward<\w+, true", Shape(1, 1, repeats=8), ""),
    (r"LayerNormForward<", Shape(1, 1, repeats=8), _WALKED),
    (r"LayerNormBackward<\w+, true", Shape(2, 1, repeats=8), ""),
    (r"LayerNormBackward<", Shape(2, 1, repeats=8), _WALKED),
    (r"GumbelSoftmax(Backward)?<\w+, true", Shape(2, 1, repeats=8), ""),
    (r"GumbelSoftmax(Backward)?<", Shape(2, 1, repeats=8), _WALKED),
)

#: Kernels by the beginning of their names, and what else than the memory's bandwidth bounds them.
_BOUND_BY_OTHERS = (
    (r"TiledProduct<", "a product of matrices: bound by arithmetic, without tensor cores"),
    (r"(JoinedParts|MaskedSoftmax\w*)<", "attention: bound by its products of matrices"),
    (r"(SoftRank\w*)<", "compares all pairs of a row: bound by arithmetic"),
    (r"(Roi\w*)<", "gathers at places that the boxes name: bound by the caches"),
    (r"(LayerNorm|GumbelSoftmax)BackwardBackward<", _WALKED),
    (r"ByChannel<\w+<\w+>, true", "a vector may have two channels, or the memory is not aligned"),
    (
        r"(ColumnSums|ChannelMeans|PartialColumnSum|JoinMoments|TotalSum|JoinedMoments)<",
        "adds up partial sums, which are a small part of what the launch before it reads, or the "
        "columns of a matrix with few of them",
    ),
)

#: Maps by how their tensors are read (``Access`` in ``kernels/common/operands.h``).
_MAP = re.compile(r"Map<\w+, (\d), (\d), .*\(Access\)(\d)>")

_SEVERAL_AXES = (
    "views with several strided axes: an offset takes a division for each axis, which is more "
    "instructions for each element than there is time for"
)


def budget_of(kernel: str, size: int) -> Budget | None:
    """The budget of ``kernel`` (its name, without namespaces), whose elements have ``size`` bytes;
    None if it is in no table."""
    for pattern, reason in _BOUND_BY_OTHERS:
        if re.match(pattern, kernel):
            return Budget(None, exempt=reason)
    for pattern, shape, reason in _MEMORY_BOUND:
        if re.match(pattern, kernel):
            return _with_goal(shape, DENSE_GOAL, reason, size)
    found = _MAP.match(kernel)
    if found is None:
        return None
    outputs, inputs, access = map(int, found.groups())
    if access == 0:
        return _with_goal(Shape(inputs, outputs), DENSE_GOAL, "", size)
    if access == 1:
        return _with_goal(Shape(inputs, outputs), VIEW_GOAL, "", size)
    # Each thread has 16 elements, eight at once (map_singles in kernels/common/map.h).
    single = Shape(inputs, outputs, packs=False, repeats=2)
    return _with_goal(single, VIEW_GOAL, "" if access == 2 else _SEVERAL_AXES, size)


def _with_goal(shape: Shape, goal: float, reason: str, size: int) -> Budget:
    reason = reason or (FLOAT64 if size == 8 else "")
    return Budget(shape, None if reason else goal, reason)
