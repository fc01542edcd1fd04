"""How noisy a function is, measured by Moré and Wild's difference table (ECNoise).

Values φ₀ … φ_m at equal spacing are a smooth function plus noise of standard deviation σ. A k-th
difference takes a polynomial of degree below k away and leaves noise of variance
σ²·(2k)!/(k!)², so that

    σ_k² = γ_k · mean (Δᵏφ)²,    γ_0 = 1,  γ_k = ½·k/(2k−1)·γ_{k−1} = (k!)²/(2k)!

The first k for which three levels in a row agree, and Δᵏφ has both signs, gives the noise.

Source: Moré & Wild, Estimating computational noise, SIAM J. Sci. Comput. 33 (2011), and their
ECnoise.m.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from gradlint.numerics.products import norm, real_dot, widened

#: Points on each side of the sample: nine values with the one at the sample itself, which costs
#: nothing (Moré & Wild recommend seven to nine).
SIDE = 4

#: Three levels in a row agree if the largest is at most this many times the smallest (ECnoise.m).
AGREEMENT = 4.0

#: Levels in a row that must agree (ECnoise.m).
LEVELS = 3

#: First differences of which this share is zero show that the spacing is too small (ECnoise.m).
SHARE_OF_ZEROS = 0.5

#: The spacing is changed by this factor where it was too small or too large (ECnoise.m).
RESPACING = 100.0

#: Spacings tried (heuristic: from 16 units in the last place five reach those of float32 inside
#: float64).
SPACINGS = 5

#: What is left of φ after the linear part may change by this share of ‖v∘f‖; beyond it the spacing
#: is too large (ECnoise.m, there relative to φ, which may cancel).
LARGEST_RANGE = 0.1

#: Noise that grows by more than this with the spacing is a staircase whose steps the finer spacing
#: did not cross yet (heuristic: white noise is measured to within a factor of 1.5).
GROWTH = 2.0

#: Growth with :data:`RESPACING` beyond which it is no noise but a kink: that grows like the
#: spacing, a staircase like its root.
KINK_GROWTH = 0.3 * RESPACING

#: Spacing 2^(4−p) for a significand of p bits: 16 units in the last place (``peers.md`` §2: it
#: worked on thirteen operators).
SPACING_BITS = 4


def ecnoise(values: Sequence[float]) -> float | None:
    """The noise in ``values`` of a function at equal spacing.

    Args:
        values: at least five, seven to nine are best; a linear part may be subtracted before.

    Returns:
        One standard deviation of the noise; None where no level is accepted: the spacing is too
        small (see :func:`too_fine`), too large, or there is no noise.
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
    """Whether half of the first differences are zero: neighbours are too close to differ."""
    zeros = sum(before == after for before, after in itertools.pairwise(values))
    return zeros >= SHARE_OF_ZEROS * (len(values) - 1)


@dataclass(frozen=True)
class Noise:
    """Measured noise.

    Args:
        level: one standard deviation of the noise in φ.
        spacing: step between neighbouring values, relative to u.
        plateau: whether it is the same at a wider spacing. Otherwise it may be a staircase half
            crossed, or a kink at the sample, whose differences are not zero at any order.
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

    A staircase (float32 inside float64) is noise only at spacings that cross its steps, and so a
    wider spacing is looked at too; the noise counts where it has stopped growing.

    Args:
        evaluate: outputs at a value of the input.
        x: the input; u: direction in float64, of the same shape.
        outputs: at x; cotangents: v, one an output.
        claimed: gradient for v.
        spacing: first spacing to try; 16 units in the last place or more.

    Returns:
        The noise; None where no spacing gives an accepted level.
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
                break  # it was too small before, and is too large now
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
    """φ(t) − φ(0) at 2·:data:`SIDE` + 1 points, and the same without Re⟨g, dx⟩. Differences are
    taken element by element."""
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
