"""What a sweep measures besides its ladder of steps: noise, window fit, path integral, elements.

Each is an independent way to measure the slope that a claimed gradient leaves unexplained, or to
find out how precisely that slope can be measured at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from gradlint.numerics._noise import SPACING_BITS, Noise, measure_noise
from gradlint.numerics._window import Fit, choose_window
from gradlint.numerics.bank import Draw
from gradlint.numerics.differences import Estimate, Step, difference
from gradlint.numerics.directions import product_norm
from gradlint.numerics.map import Map, along
from gradlint.numerics.pair import FINEST
from gradlint.numerics.path import NODES, PATH_STEPS, path_integral
from gradlint.numerics.products import widened

#: Seconds that the window fit and the path integrals may each take (heuristic: a tenth of a
#: worker's time limit; the sweep alone takes half a minute for an op of half a second per call).
ALLOWED_S = 6.0

#: Evaluations that a window fit, the noise table and one path integral need, counting a VJP as two.
#: Times the seconds of one evaluation, this is compared with :data:`ALLOWED_S`.
WINDOW_CALLS, NOISE_CALLS, PATH_CALLS = 40, 24, 2 + 2 * len(NODES)


@dataclass(frozen=True)
class Elements:
    """How visible single elements of the gradient are.

    Args:
        total: number of elements whose gradient is not zero.
        seen: for how many of them a gradient of zero would have been noticed.
        resolution: smallest error of a single element that would have been noticed, relative to
            the median element that is not zero; inf if all are zero.
    """

    total: int = 0
    seen: int = 0
    resolution: float = math.inf


@dataclass
class Measures:
    """What was measured besides the ladder.

    Args:
        window: the window fit, or None.
        paths: the path integrals.
        product: ‖g∘u‖ along the direction.
        left_out: names of the measurements that would have taken too long.
    """

    window: Fit | None = None
    paths: list[Estimate] = field(default_factory=list)
    product: float = 0.0
    left_out: list[str] = field(default_factory=list)


def noise_of_draw(
    function: Map, index: int, draw: Draw, finest: Step, bits: int
) -> tuple[Noise, float] | None:
    """The noise of φ, and the same in units of one rounding of the outputs.

    Args:
        finest: the finest usable step, at which the spacing begins.
        bits: significand bits.
    """
    found = measure_noise(
        along(function, index),
        draw.x,
        draw.u,
        function.outputs,
        draw.vs,
        draw.g,
        max(finest.h, 2.0 ** (SPACING_BITS - bits)),
    )
    # The noise of a step is that of two values, divided by 2h.
    rounding = finest.noise * finest.h * math.sqrt(2.0)
    return None if found is None or rounding <= 0.0 else (found, found.level / rounding)


def measure(
    function: Map,
    index: int,
    draw: Draw,
    *,
    start: float,
    coarsest: float,
    kappa: float,
    bits: int,
    call_s: float,
) -> Measures:
    """Window fit and path integrals for one draw.

    Args:
        start: a step at which truncation should not matter yet.
        coarsest: largest step of the ladder.
        kappa: factor by which the noise exceeds the ulp model.
        bits: significand bits.
        call_s: seconds of one evaluation; measurements that would take too long are left out.
    """
    found = Measures(product=product_norm(draw.g, draw.u))
    if WINDOW_CALLS * call_s <= ALLOWED_S:
        evaluate = along(function, index)

        def take(h: float) -> Step | None:
            return difference(evaluate, draw.x, draw.u, draw.vs, draw.g, h, function.rounding)

        found.window = choose_window(take, start, coarsest, kappa, bits)
    else:
        found.left_out.append("window fit")
    for number, h in enumerate(PATH_STEPS, 1):
        if number * PATH_CALLS * call_s > ALLOWED_S:
            found.left_out.append("path integral" if number == 1 else f"path integral at {h}")
            continue
        path = path_integral(function, index, draw.u, list(draw.vs), h, kappa=kappa)
        if path is not None:
            found.paths.append(path)
    return found


def visible_elements(g: torch.Tensor, u: torch.Tensor, threshold: float) -> Elements:
    """For how many elements a gradient of zero would have been noticed along ``u``.

    Args:
        threshold: disagreement along ``u`` beyond which a gradient is called wrong.
    """
    weights = (widened(g).abs() * widened(u).abs()).flatten()
    weights = weights[weights > 0.0]
    if not weights.numel() or not math.isfinite(threshold):
        return Elements(int(weights.numel()))
    median = float(weights.median())
    return Elements(
        int(weights.numel()),
        int((weights > threshold).sum()),
        max(threshold / median, FINEST),
    )
