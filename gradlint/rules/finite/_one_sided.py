"""One-sided derivatives along single elements, and whether they exist.

With D(h) = Re⟨v, f(x + h·e) − f(x)⟩ / h over steps h₁ > h₂ > …, a finite derivative from the right
shows as differences D(h_k) − D(h_{k+1}) that shrink: by the ratio of the steps where f is smooth.
At a root they grow, at x·log x they stay the same, and at a jump D itself grows like 1/h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from gradlint.rules._subject import Subject

#: Steps 2^−e by bits of the significand: from where third derivatives vanish to where roundoff
#: takes over. Half precision has no room for this, and is not judged.
STEPS = {53: (7, 10, 13, 16, 19, 22), 24: (4, 6, 8, 10)}

#: Successive differences of D must shrink at least by this factor to count as converging
#: (x·|x|^½ shrinks by 0.35 in float64; x·log x not at all).
SHRINKS = 0.6

#: Roundings of ⟨v, f⟩ that a difference of two of them may hold (heuristic).
ROUNDINGS = 8.0


@dataclass(frozen=True)
class OneSided:
    """Derivatives from the right and from the left, None where the function is not finite there.

    ``unbounded`` says whether a side that can be evaluated has no finite derivative.
    """

    right: float | None
    left: float | None
    unbounded: bool
    limit: float

    def finite_for(self, returned: complex) -> bool:
        """Whether a gradient of ``returned`` (NaN or infinite) is wrong at this point."""
        found = [side for side in (self.right, self.left) if side is not None]
        if not found or max(map(abs, found)) > self.limit:
            return False  # beyond the range of the dtype: an honest overflow
        # An infinite gradient may be the true derivative of the other side.
        nan = math.isnan(returned.real) or math.isnan(returned.imag)
        return nan or not self.unbounded


def one_sided(subject: Subject) -> Callable[[int, list[int]], OneSided]:
    """A function that measures input ``index`` at element ``where``, under the run's cotangents."""
    import torch

    from gradlint.numerics._differences import significand_bits
    from gradlint.numerics._products import real_dot, rms, unit_roundoff, widened
    from gradlint.rules.contract._dependence import wide_problem
    from gradlint.trace._problem import OpRaised

    problem = wide_problem(subject)
    vs = {name: widened(v) for name, v in subject.run.cotangents.items()}
    nowhere = OneSided(None, None, False, 0.0)

    def outputs(values: list[torch.Tensor]) -> dict[str, torch.Tensor] | None:
        try:
            found = {output.name: widened(output.value) for output in problem.forward(values)}
        except OpRaised:
            return None
        if any(name not in found or found[name].shape != v.shape for name, v in vs.items()):
            return None
        return found

    base = outputs(problem.values())

    def change(after: dict[str, torch.Tensor]) -> float:
        total = 0.0
        for name, v in vs.items():
            moved = after[name] - base[name] if base else after[name]
            # Infinities that stay where they are do not change.
            kept = (after[name] == base[name]) if base else torch.zeros_like(moved).bool()
            total += real_dot(v, torch.where(kept, torch.zeros_like(moved), moved))
        return total

    def measure(index: int, where: list[int]) -> OneSided:
        value = problem.inputs[index].value
        bits = significand_bits(value.dtype)
        if base is None or bits not in STEPS or value.layout != torch.strided:
            return nowhere
        eps = max(unit_roundoff(value.dtype), *(unit_roundoff(v.dtype) for v in vs.values()))
        terms = (widened(v).abs() * base[name].abs() for name, v in vs.items())
        size = sum(float(term[term.isfinite()].sum()) for term in terms)
        element = abs(complex(value[tuple(where)].item()))
        scale = max(element, rms(value)) or 1.0

        def side(sign: float) -> tuple[float | None, bool]:
            slopes, noises = [], []
            for exponent in STEPS[bits]:
                values = problem.values()
                moved = value.clone()
                moved[tuple(where)] += sign * scale * 2.0**-exponent
                h = complex(moved[tuple(where)].item()) - complex(value[tuple(where)].item())
                values[index] = moved
                after = outputs(values)
                total = change(after) if after is not None and h else math.nan
                if not math.isfinite(total):
                    return None, False
                slopes.append(total / h.real)
                noises.append(ROUNDINGS * eps * size / abs(h))
            gaps = [abs(a - b) for a, b in pairwise(slopes)]
            floors = [a + b for a, b in pairwise(noises)]
            converges = all(
                fine <= SHRINKS * coarse + noise + 1e-9 * abs(slopes[-1])
                for coarse, fine, noise in zip(gaps, gaps[1:], floors[1:], strict=False)
            )
            return (slopes[-1], False) if converges else (None, True)

        right, left = side(1.0), side(-1.0)
        dtype = subject.problem.inputs[index].value.dtype
        return OneSided(right[0], left[0], right[1] or left[1], torch.finfo(dtype).max / 2)

    return measure
