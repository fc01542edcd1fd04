"""The steps of a sweep, coarsest first: their sizes, one difference for each, and the noise and the
truncation that they show."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from gradlint.numerics.bank import Draw
from gradlint.numerics.differences import Estimate, Step, difference, noise_factor

#: Exponents e of the coarsest and the finest step 2^−e, and the number of steps, by significand
#: bits. Steps are relative to the size of each element, so the finest ones move it by a few ulps.
RANGES = {53: (1, 45, 23), 24: (1, 21, 11), 11: (0, 10, 11), 8: (0, 7, 8)}

#: Fewest steps of a sweep: two to extrapolate, one more to see that they converge.
FEWEST_STEPS = 3

#: Pairs of neighbouring steps, counted from the finest, whose scatter counts as noise (heuristic:
#: in float64 they lie below 2^−27, where truncation no longer matters).
NOISE_PAIRS = 8

#: The truncation constant is fitted to steps whose error exceeds this multiple of predicted noise.
ABOVE_NOISE = 10.0

#: Number of steps in that fit: the finest ones that show truncation, for which h² dominates.
FITTED_STEPS = 4

#: States of a step.
OK, NOT_FINITE, RAISED, UNCHANGED = "ok", "not finite", "raised", "no change"


def step_sizes(bits: int, count: int | None) -> list[float]:
    """``count`` steps, coarsest first, with exponents evenly spaced over the range of a dtype."""
    coarsest, finest, usual = RANGES[bits]
    count = max(FEWEST_STEPS, usual if count is None else count)
    span = finest - coarsest
    return [2.0 ** -(coarsest + span * k / (count - 1)) for k in range(count)]


def take_steps(
    evaluate: Callable[[torch.Tensor], Sequence[torch.Tensor] | None],
    draw: Draw,
    sizes: Sequence[float],
    rounding: Sequence[float] | None,
) -> list[tuple[Step | None, str]]:
    """One difference for each step, with the state of that step alone.

    Args:
        evaluate: returns the outputs at a value of the input.
        draw: the pair (v, u).
        sizes: the steps.
        rounding: as for :func:`difference`.
    """
    taken: list[tuple[Step | None, str]] = []
    for h in sizes:
        seen: list[Sequence[torch.Tensor] | None] = []

        def watched(
            value: torch.Tensor, seen: list[Sequence[torch.Tensor] | None] = seen
        ) -> Sequence[torch.Tensor] | None:
            seen.append(evaluate(value))
            return seen[-1]

        step = difference(watched, draw.x, draw.u, draw.vs, draw.g, h, rounding)
        after, before = seen
        if after is None or before is None:
            taken.append((None, RAISED))
        elif step is None:
            taken.append((None, NOT_FINITE))
        else:
            same = all(torch.equal(a, b) for a, b in zip(after, before, strict=True))
            taken.append((step, UNCHANGED if same else OK))
    return taken


def states_of(taken: Sequence[tuple[Step | None, str]], bits: int) -> list[str]:
    """The states of all steps, where "no change" is kept only for steps that are too fine.

    These form an unbroken run of the finest steps below one at which the outputs change, and begin
    below 2^(−bits/3): a function that is constant over larger steps has slope zero.
    """
    states = [state for _, state in taken]
    run = 0
    for state in reversed(states):
        if state != UNCHANGED:
            break
        run += 1
    first = len(states) - run
    step = taken[first][0] if run else None
    if step is None or first == 0 or step.h > 2.0 ** (-bits / 3):
        run = 0
    kept = len(states) - run
    return [OK if state == UNCHANGED else state for state in states[:kept]] + states[kept:]


def scatter(usable: Sequence[Step]) -> float:
    """κ from the scatter of the residuals at the finest steps.

    Unlike slopes, residuals use the realised displacement, so rounding x ± h·u adds no scatter.
    """
    pairs = min(NOISE_PAIRS, max(2, (len(usable) - 1) // 2))
    flat = [replace(step, slope=step.residual) for step in usable][-(pairs + 1) :]
    return noise_factor([flat[k : k + 3] for k in range(0, max(1, len(flat) - 1), 2)])


def truncation_of(
    usable: Sequence[Step], found: Estimate, kappa: float
) -> tuple[float, tuple[float, float]]:
    """C of the truncation error C·h², and the smallest and largest step that show it; zeros if no
    step does."""
    shown = []
    for step in usable:
        excess = abs(step.residual - found.residual)
        if excess > ABOVE_NOISE * kappa * step.noise + found.bar:
            shown.append((step.h, excess / step.h**2))
    if not shown:
        return 0.0, (0.0, 0.0)
    curvature = statistics.median(ratio for _, ratio in shown[-FITTED_STEPS:])
    return curvature, (shown[-1][0], shown[0][0])
