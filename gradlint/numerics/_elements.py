"""Which elements of a gradient are wrong, and what they should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics._differences import LADDER, difference, estimate
from gradlint.numerics._directions import move_scale, signs
from gradlint.numerics._judge import Map, along, working_bits

#: Up to this many elements every one is measured; beyond, the wrong ones are found by bisection
#: and a random sample is measured beside them.
MEASURE_ALL = 256

#: Elements measured in a larger tensor, besides those found by bisection.
SAMPLED = 48

#: Wrong elements that bisection looks for in a large tensor.
LOCATED = 6


@dataclass
class Elements:
    """Measured elements of ∇⟨v, f⟩ with respect to one input.

    Args:
        indices: flat positions measured, int64, in ascending order.
        measured: the derivative at each, float64 or complex128.
        bars: error bar of each, float64.
        complete: whether every element of the input was measured.
    """

    indices: torch.Tensor
    measured: torch.Tensor
    bars: torch.Tensor
    complete: bool


def measure_elements(
    function: Map,
    index: int,
    cotangents: Sequence[torch.Tensor],
    claimed: torch.Tensor,
    *,
    kappa: float = 1.0,
    seed: int = 0,
    limit: int = MEASURE_ALL,
    known: Sequence[int] | None = None,
    sampled: int = SAMPLED,
) -> Elements:
    """Central differences of ⟨v, f⟩ by single elements of input ``index``.

    Args:
        function: the map; its point is where derivatives are taken.
        cotangents: v, one an output.
        claimed: the gradient under test, used only to choose which elements of a large tensor
            are measured.
        kappa: factor by which noise exceeds the ulp model.
        seed: of the random sample in large tensors.
        limit: tensors up to this size are measured whole.
        known: wrong elements of a larger tensor, where they are known; default: look for them.
        sampled: random elements of a larger tensor, besides those.
    """
    x = function.values[index]
    count = x.numel()
    if count <= limit:
        chosen = list(range(count))
    else:
        generator = torch.Generator().manual_seed(seed)
        sample = torch.randperm(count, generator=generator)[:sampled].tolist()
        if known is None:
            known = locate(function, index, cotangents, claimed, seed=seed)
        chosen = sorted({*sample, *known})
    evaluate = along(function, index)
    scale = move_scale(x).flatten()
    exponents = LADDER[working_bits(function, x)]
    measured = torch.full((len(chosen),), float("nan"), dtype=torch.float64)
    imaginary = torch.zeros_like(measured)
    bars = torch.full((len(chosen),), float("inf"), dtype=torch.float64)
    units = (1.0, 1j) if x.is_complex() else (1.0,)
    zero = torch.zeros_like(x)
    for place, element in enumerate(chosen):
        for unit in units:
            u = torch.zeros(x.shape, dtype=_wide(x), device=x.device)
            u.view(-1)[element] = torch.tensor(unit * float(scale[element]), dtype=u.dtype)
            u = function.projected(index, u)
            steps = [
                step
                for e in exponents
                if (
                    step := difference(evaluate, x, u, cotangents, zero, 2.0**-e, function.rounding)
                )
                is not None
            ]
            found = estimate(steps, kappa)
            if found is None:
                continue
            target = imaginary if unit == 1j else measured
            target[place] = found.slope / float(scale[element])
            bars[place] = found.bar / float(scale[element])
    values = torch.complex(measured, imaginary) if x.is_complex() else measured
    return Elements(torch.tensor(chosen, dtype=torch.int64), values, bars, count <= limit)


def locate(
    function: Map,
    index: int,
    cotangents: Sequence[torch.Tensor],
    claimed: torch.Tensor,
    *,
    seed: int,
) -> list[int]:
    """Flat positions of some wrong elements, by bisection: about 6·log₂ n evaluations each.

    A set of elements is moved together along ±1 signs; where the claimed gradient leaves the
    slope unexplained, the set is halved and both halves are looked at, worst first.
    """
    x = function.values[index]

    def between(low: int, high: int) -> float:
        chosen = torch.zeros(x.shape, dtype=torch.bool)
        chosen.view(-1)[low:high] = True
        return unexplained(function, index, cotangents, claimed, chosen, seed=seed)

    wrong: list[int] = []
    queue = [(between(0, x.numel()), 0, x.numel())]
    while queue and len(wrong) < LOCATED:
        queue.sort()
        size, low, high = queue.pop()
        if size == 0.0:
            continue
        if high - low == 1:
            wrong.append(low)
            continue
        middle = (low + high) // 2
        for part in ((low, middle), (middle, high)):
            queue.append((between(*part), *part))
    return wrong


def unexplained(
    function: Map,
    index: int,
    cotangents: Sequence[torch.Tensor],
    claimed: torch.Tensor,
    chosen: torch.Tensor,
    *,
    seed: int,
) -> float:
    """The slope that the claimed gradient misses when only the elements ``chosen`` (boolean, the
    shape of input ``index``) move, along ±1 signs; 0 where it is within its error bar."""
    x = function.values[index]
    generator = torch.Generator().manual_seed(seed)
    u = function.projected(index, move_scale(x) * signs(x, generator)) * chosen.to(x.device)
    evaluate = along(function, index)
    steps = [
        step
        for e in LADDER[working_bits(function, x)][:3]
        if (step := difference(evaluate, x, u, cotangents, claimed, 2.0**-e)) is not None
    ]
    found = estimate(steps, 1.0)
    if found is None:
        return 0.0
    return abs(found.residual) if abs(found.residual) > 3.0 * found.bar else 0.0


def _wide(x: torch.Tensor) -> torch.dtype:
    return torch.complex128 if x.is_complex() else torch.float64
