"""What a sweep measures beside its ladder of steps: noise, window fit, path integral, elements.

Each is a way of its own to see the slope that a claimed gradient leaves unexplained, or how sharply
that can be seen at all.
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

#: Seconds that the window fit and the path integrals may take each (heuristic: a tenth of the time
#: that a worker has; a sweep of an op of half a second a call takes half a minute by itself).
ALLOWED_S = 6.0

#: Evaluations of a window fit, of the noise table, and of one path integral with its VJPs counted
#: as two: what is compared with :data:`ALLOWED_S`.
WINDOW_CALLS, NOISE_CALLS, PATH_CALLS = 40, 24, 2 + 2 * len(NODES)


@dataclass(frozen=True)
class Elements:
    """How visible single elements of the gradient are.

    Args:
        total: elements whose gradient is not zero.
        seen: how many of them could not be zeroed unseen.
        resolution: smallest error that would have been seen in any one element, relative to the
            median of those that are not zero; inf where there is none.
    """

    total: int = 0
    seen: int = 0
    resolution: float = math.inf


@dataclass
class Measures:
    """What was measured beside the ladder.

    Args:
        product: ‖g∘u‖ along the direction.
        left_out: what was not measured for want of time.
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
        bits: of the significand.
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
    # A step's noise is that of two values over 2h.
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
        start: step at which truncation should not matter yet.
        coarsest: largest step of the ladder.
        kappa: factor by which noise exceeds the ulp model.
        bits: of the significand.
        call_s: seconds of one evaluation; what would take too long is left out.
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
    """How many elements could not be zeroed unseen along ``u``.

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
