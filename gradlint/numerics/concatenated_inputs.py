"""A map with its inputs concatenated: those that move together cost one pair (v, u)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.numerics.map import Map, Projection


def by_dtype(function: Map, moved: Sequence[int]) -> list[list[int]]:
    """The input positions ``moved``, grouped by dtype."""
    groups: dict[torch.dtype, list[int]] = {}
    for position in moved:
        groups.setdefault(function.values[position].dtype, []).append(position)
    return list(groups.values())


def merged(function: Map, members: Sequence[Sequence[int]]) -> Map:
    """``function`` with each group of inputs flattened and concatenated into one input.

    Inputs that are in no group stay at their values.

    Args:
        function: f(x₁, …, xₙ).
        members: the groups of input positions, each of one dtype.
    """

    def in_rows(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [torch.cat([tensors[k].reshape(-1) for k in group]) for group in members]

    def apart(rows: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        found = list(function.values)
        for row, group in zip(rows, members, strict=True):
            sizes = [function.values[k].numel() for k in group]
            for k, part in zip(group, row.split(sizes), strict=True):
                found[k] = part.reshape(function.values[k].shape)
        return found

    rows = in_rows(function.values)

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        here = all(a is b for a, b in zip(values, rows, strict=True))
        at = function.values if here else apart(values)
        return in_rows(function.gradients_at(at, cotangents))

    def twin() -> Map | None:
        wide = function.twin() if function.twin is not None else None
        return None if wide is None else merged(wide, members)

    def project(number: int) -> Projection:
        def inside(row: torch.Tensor) -> torch.Tensor:
            group = members[number]
            sizes = [function.values[k].numel() for k in group]
            parts = []
            for k, part in zip(group, row.split(sizes), strict=True):
                shaped = part.reshape(function.values[k].shape)
                parts.append(function.projected(k, shaped).reshape(-1))
            return torch.cat(parts)

        return inside

    return Map(
        rows,
        function.outputs,
        lambda values: function.evaluate(apart(values)),
        pull_at,
        project=[project(number) for number in range(len(members))],
        twin=twin if function.twin is not None else None,
    )
