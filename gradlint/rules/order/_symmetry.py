"""Second derivatives are symmetric: ⟨w₁, H·w₂⟩ = ⟨w₂, H·w₁⟩, for each pair of inputs too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from gradlint.numerics._differences import significand_bits
from gradlint.numerics._directions import direction
from gradlint.numerics._judge import TOLERATED
from gradlint.numerics._products import norm, real_dot, widened
from gradlint.trace._problem import OpRaised
from gradlint.trace._random import common_random_numbers

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject
    from gradlint.rules.order._shared import Twice
    from gradlint.trace._problem import Problem

#: Inputs whose pairs are looked at; of more, the first ones.
MOST_INPUTS = 4

#: Of the second look, relative to the seed of the first.
AGAIN = 1


@dataclass
class Asymmetry:
    """⟨w₁, H·w₂⟩ and ⟨w₂, H·w₁⟩ for two inputs (or one), and their relative difference."""

    first: int
    second: int
    one: float
    other: float
    relative: float


def asymmetry(subject: Subject, twice: Twice) -> Asymmetry | None:
    """The pair of inputs whose second derivatives are least symmetric, seen twice; None where
    all are symmetric to within rounding, or can't be had.

    One forward, one backward and two double backwards an input; twice that where it finds. Only in
    float64: in less, the rounding of terms that cancel is no smaller than many second derivatives.
    The second look is without casts to 16 bits inside.
    """
    wide = (torch.float64, torch.complex128)
    if not all(item.value.dtype in wide for item in subject.problem.inputs):
        return None
    try:
        if _worst(subject, subject.problem, twice, subject.seed) is None:
            return None
        exact = subject.problem.exact()
        problem = subject.problem if exact is None else exact[0]
        return _worst(subject, problem, twice, subject.seed + AGAIN)
    except OpRaised:
        return None


def _worst(subject: Subject, problem: Problem, twice: Twice, seed: int) -> Asymmetry | None:
    assert twice.map is not None
    generator = torch.Generator().manual_seed(seed)
    leaves, outputs = problem.linearize()
    chosen = [item for item in outputs if item.differentiable]
    vs = [subject.run.cotangents[item.name] for item in chosen]
    with common_random_numbers(problem.seed):
        grads = problem.backward(chosen, leaves, vs, create_graph=True)
    attached = [k for k in twice.map.targets if grads[k] is not None and _has_graph(grads[k])]
    attached = attached[:MOST_INPUTS]
    ws: dict[int, list[torch.Tensor]] = {}
    products: dict[int, list[list[torch.Tensor | None]]] = {}
    for k in attached:
        x, g = problem.inputs[k].value, grads[k]
        assert g is not None
        kinds = ("random", "signs")
        moves = [twice.map.map.projected(k, direction(kind, x, g, generator)) for kind in kinds]
        ws[k] = [widened(move.to(x.dtype)) for move in moves]
        products[k] = [
            problem.backward([g], leaves, [w.to(g.dtype)], retain_graph=True) for w in ws[k]
        ]
    # Per unit move of the size of the inputs, outputs, gradients and second derivatives have one
    # unit: below that share of the outputs a second derivative is rounding.
    floor = sum(
        norm(widened(v).abs() * widened(item.value).abs())
        for v, item in zip(vs, chosen, strict=True)
    )
    found = [
        pair
        for place, i in enumerate(attached)
        for k in attached[place:]
        if (pair := _pair(i, k, ws, products, grads, floor)) is not None
    ]
    return max(found, key=lambda pair: pair.relative, default=None)


def _pair(
    i: int,
    k: int,
    ws: dict[int, list[torch.Tensor]],
    products: dict[int, list[list[torch.Tensor | None]]],
    grads: list[torch.Tensor | None],
    floor: float,
) -> Asymmetry | None:
    first, second = products[i][0][k], products[k][1][i]
    w_i, w_k = ws[i][0], ws[k][1]
    g_i, g_k = grads[i], grads[k]
    if first is None or second is None or g_i is None or g_k is None:
        return None
    one, other = real_dot(first, w_k), real_dot(second, w_i)
    scale = floor + sum(
        norm(widened(a).abs() * b.abs())
        for a, b in ((first, w_k), (second, w_i), (g_i, w_i), (g_k, w_k))
    )
    if not abs(one - other) > TOLERATED[significand_bits(torch.float64)] * scale:
        return None
    return Asymmetry(i, k, one, other, abs(one - other) / scale)


def _has_graph(gradient: torch.Tensor | None) -> bool:
    return gradient is not None and gradient.requires_grad
