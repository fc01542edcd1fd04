"""Measure the noise of a function with Moré and Wild's difference table (ECNoise).

Values φ₀ … φ_m at equal spacing are those of a smooth function plus noise of standard deviation σ.
The k-th difference removes any polynomial of degree below k and leaves noise of variance
σ²·(2k)!/(k!)², so that

    σ_k² = γ_k · mean (Δᵏφ)²,    γ_0 = 1,  γ_k = ½·k/(2k−1)·γ_{k−1} = (k!)²/(2k)!

The noise is σ_k for the first k at which three levels in a row agree and Δᵏφ has both signs.

Source: Moré & Wild, Estimating computational noise, SIAM J. Sci. Comput. 33 (2011), and their
program ECnoise.m; gradlint/docs/numerics.md, section "Noise".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from gradlint.numerics.products import norm, real_dot, widened

#: Points on each side of the sample. With the value at the sample, which is known already, that
#: makes nine; Moré & Wild recommend seven to nine.
SIDE = 4

#: Three levels in a row agree if the largest is at most this many times the smallest (ECnoise.m).
AGREEMENT = 4.0

#: Levels in a row that must agree (ECnoise.m).
LEVELS = 3

#: If this share of the first differences is zero, the spacing is too small (ECnoise.m).
SHARE_OF_ZEROS = 0.5

#: Factor by which a spacing that was too small or too large is changed (ECnoise.m).
RESPACING = 100.0

#: Spacings tried at most (heuristic: starting from 16 units in the last place, five suffice to
#: reach the steps that float32 rounding leaves in a float64 function).
SPACINGS = 5

#: If φ without its linear part changes by more than this share of ‖v∘f‖, the spacing is too large
#: (ECnoise.m compares with φ itself, whose terms may cancel).
LARGEST_RANGE = 0.1

#: If the noise grows by more than this factor with the spacing, the function is a staircase and the
#: finer spacing did not cross its steps (heuristic: white noise is measured to a factor of 1.5).
GROWTH = 2.0

#: If it grows by more than this factor when the spacing grows by :data:`RESPACING`, it is a kink:
#: differences at a kink grow like the spacing, those of a staircase like its square root.
KINK_GROWTH = 0.3 * RESPACING

#: The first spacing is 2^(4−p) for a significand of p bits, which is 16 units in the last place
#: (measured on thirteen operators: gradlint/docs/numerics.md, section "Noise").
SPACING_BITS = 4


def ecnoise(values: Sequence[float]) -> float | None:
    """The noise in ``values`` of a function at equal spacing.

    Args:
        values: at least five, better seven to nine; a linear part may have been subtracted.

    Returns:
        One standard deviation of the noise; None if no level is accepted because the spacing is
        too small (see :func:`too_fine`) or too large, or because there is no noise.
    """
    if too_fine(values) or not all(map(math.isfinite, values)):
        return None
    levels: list[float] = []
    both_signs: list[bool] = []
    row, gamma = list(values), 1.0
    for k in range(1, len(values)):
        row = [after - before for before, after in itertools.pairwise(row)]
        gamma *= 0.5 * k / (2 * k - 1)
        levels.append(math.sqrt(gamma * sum(value * value for value in row) / len(row)))
        both_signs.append(min(row) < 0.0 < max(row))
    for k in range(len(levels) - LEVELS + 1):
        window = levels[k : k + LEVELS]
        if both_signs[k] and 0.0 < max(window) <= AGREEMENT * min(window):
            return levels[k]
    return None


def too_fine(values: Sequence[float]) -> bool:
    """Whether half of the first differences are zero, so that neighbours are too close."""
    zeros = sum(before == after for before, after in itertools.pairwise(values))
    return zeros >= SHARE_OF_ZEROS * (len(values) - 1)


@dataclass(frozen=True)
class Noise:
    """Measured noise.

    Args:
        level: one standard deviation of the noise in φ.
        spacing: step between neighbouring values, relative to u.
        plateau: whether a wider spacing gives the same level. If not, it may come from a
            staircase only partly crossed, or from a kink at the sample, whose differences do not
            vanish at any order.
    """

    level: float
    spacing: float
    plateau: bool = False


def measure_noise(
    evaluate: Callable[[torch.Tensor], Sequence[torch.Tensor] | None],
    x: torch.Tensor,
    u: torch.Tensor,
    outputs: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
    claimed: torch.Tensor,
    spacing: float,
) -> Noise | None:
    """The noise of φ(t) = Re⟨v, f(x + t·u)⟩, by :func:`ecnoise` on φ minus its claimed linear part.

    A staircase (from computing in float32 inside a float64 function) looks like noise only at
    spacings that cross its steps. So a wider spacing is tried too, until the noise stops growing.

    Args:
        evaluate: outputs at a value of the input.
        x: the input; u: direction in float64, of the same shape.
        outputs: the outputs at x; cotangents: v, one per output.
        claimed: the gradient for v.
        spacing: the first spacing to try; 16 units in the last place or more.

    Returns:
        The noise; None if no spacing gives an accepted level.
    """
    found: Noise | None = None
    size = math.hypot(
        *(norm(widened(v) * widened(y)) for v, y in zip(cotangents, outputs, strict=True))
    )
    for attempt in range(SPACINGS):
        taken = _values(evaluate, x, u, outputs, cotangents, claimed, spacing)
        if taken is not None and too_fine(taken[0]):
            if found is not None:
                break
            spacing *= RESPACING
            continue
        level = None
        if taken is not None and max(taken[1]) - min(taken[1]) <= LARGEST_RANGE * size:
            level = ecnoise(taken[1])
        if level is None:
            if found is not None or attempt:
                break  # the spacing before was too small, and this one is too large
            spacing /= RESPACING
        elif found is not None and level <= GROWTH * found.level:
            return replace(found, plateau=True)
        elif found is not None and level > KINK_GROWTH * found.level:
            return None
        else:
            found = Noise(level, spacing)
            spacing *= RESPACING
    return found


def _values(
    evaluate: Callable[[torch.Tensor], Sequence[torch.Tensor] | None],
    x: torch.Tensor,
    u: torch.Tensor,
    outputs: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
    claimed: torch.Tensor,
    spacing: float,
) -> tuple[list[float], list[float]] | None:
    """φ(t) − φ(0) at 2·:data:`SIDE` + 1 points, with and without the linear part Re⟨g, dx⟩.

    Differences are taken element by element, so that large outputs do not hide small changes.
    """
    wide = widened(x)
    changes, values = [], []
    for k in range(-SIDE, SIDE + 1):
        if k == 0:
            changes.append(0.0)
            values.append(0.0)
            continue
        there = (wide + k * spacing * u).to(x.dtype)
        moved = evaluate(there)
        if moved is None or any(a.shape != b.shape for a, b in zip(moved, outputs, strict=True)):
            return None
        change = math.fsum(
            real_dot(v, widened(after) - widened(before))
            for v, after, before in zip(cotangents, moved, outputs, strict=True)
        )
        changes.append(change)
        values.append(change - real_dot(claimed, widened(there) - wide))
    return (changes, values) if all(map(math.isfinite, values)) else None
