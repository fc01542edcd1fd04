"""What is wrong with a tangent, told from the tangent that was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gradlint.diagnosis._evidence import unravel
from gradlint.numerics._products import norm, real_dot, widened
from gradlint.rules._evidence import plain_number

#: Relative misfit below which a hypothesis explains a tangent: the measured one has the error of a
#: single central difference (heuristic).
FITS = 1e-3

#: A factor explains a tangent where it leaves at most this share of the error (heuristic).
EXPLAINS = 0.1

#: Elements shown of those that differ most.
SHOWN = 3


def tangent_cause(
    returned: Sequence[torch.Tensor | None], measured: Sequence[torch.Tensor]
) -> tuple[str | None, str]:
    """The cause as a slug and in words; (None, "") where none fits."""
    pairs = [
        (torch.zeros_like(true) if tangent is None else widened(tangent), true)
        for tangent, true in zip(returned, measured, strict=True)
    ]
    if all(tangent is None for tangent in returned):
        return "zero", "zero: no output has a tangent, although this input has one"
    own = torch.cat([tangent.reshape(-1) for tangent, _ in pairs])
    true = torch.cat([value.reshape(-1) for _, value in pairs])
    size = norm(true)
    if norm(own) == 0.0:
        return "zero", "zero: the tangent is zero, the derivative is not"
    if size == 0.0:
        return None, ""
    factor = real_dot(true, own) / size**2
    left = norm(own - factor * true)
    if left <= min(FITS * norm(own), EXPLAINS * norm(own - true)):
        if abs(factor + 1.0) <= FITS:
            return "sign", "sign: the tangent is the negative of the derivative"
        return "scaled", f"scaled: the tangent is {factor:.4g} times the derivative"
    return None, ""


def worst_tangent(
    returned: Sequence[torch.Tensor | None],
    measured: Sequence[torch.Tensor],
    names: Sequence[str],
) -> tuple[str, list[int], list[dict[str, Any]]]:
    """The output with the largest error, the index there, and rows for the worst elements."""
    best: tuple[float, str, list[int], list[dict[str, Any]]] = (-1.0, "", [], [])
    for tangent, true, name in zip(returned, measured, names, strict=True):
        own = torch.zeros_like(true) if tangent is None else widened(tangent)
        if own.shape != true.shape or not true.numel():
            continue
        error = torch.nan_to_num((own - true).abs(), nan=float("inf")).reshape(-1)
        order = torch.argsort(error, descending=True)[:SHOWN].tolist()
        if float(error[order[0]]) <= best[0]:
            continue
        shape = tuple(true.shape)
        rows = [
            {
                "index": list(unravel(k, shape)),
                "returned": plain_number(own.reshape(-1)[k]),
                "measured": plain_number(true.reshape(-1)[k]),
                "error": float(error[k]),
            }
            for k in order
        ]
        best = (float(error[order[0]]), name, list(unravel(order[0], shape)), rows)
    return best[1:]
