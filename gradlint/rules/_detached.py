"""Whether outputs depend on inputs that no graph connects them to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.trace._problem import Problem


def dependence(problem: Problem) -> tuple[str, str, float] | None:
    """(input, output, slope) of the first smooth dependence found by finite differences, or None.

    Piecewise constant dependence (rounding, comparisons) has no slope and is none.
    """
    import torch

    from gradlint.numerics._differences import LADDER, difference, estimate, significand_bits
    from gradlint.numerics._directions import cotangent, direction
    from gradlint.trace._problem import OpRaised

    generator = torch.Generator().manual_seed(problem.seed)
    at_sample = [
        o for o in problem.forward() if o.value.is_floating_point() or o.value.is_complex()
    ]
    for position, item in enumerate(problem.inputs):
        if item.value.numel() == 0:
            continue
        for output in at_sample:
            name = output.name

            def evaluate(value: torch.Tensor, position: int = position, name: str = name):  # type: ignore[no-untyped-def]
                values = problem.values()
                values[position] = value
                try:
                    found = problem.forward(values)
                except OpRaised:
                    return None
                chosen = [o.value for o in found if o.name == name]
                return chosen or None

            v = cotangent(output.value, generator)
            zero = torch.zeros_like(item.value)
            u = direction("signs", item.value, zero, generator)
            exponents = LADDER[significand_bits(item.value.dtype)]
            steps = [difference(evaluate, item.value, u, [v], zero, 2.0**-e) for e in exponents]
            found = estimate([step for step in steps if step is not None], 1.0)
            if found is None or not math.isfinite(found.bar):
                continue
            if abs(found.slope) > 10.0 * found.bar and abs(found.slope) > 1e-9:
                return item.name, name, found.slope
    return None
