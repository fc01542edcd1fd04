"""``fast_mode``: a look along two directions for each input, before anything else is measured.

It costs at most twice what torch's fast mode does. Unlike that, it moves every element by a share
of its own size, in both directions, and its tolerance does not grow with the number of elements. An
input that it does not settle is judged as without ``fast_mode``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gradlint.dropin._options import Options
from gradlint.numerics.differences import CRITICAL, Step, at_a_glance, difference
from gradlint.numerics.directions import cotangent, direction
from gradlint.numerics.map import Map, along, working_bits
from gradlint.numerics.products import norm, rms, widened
from gradlint.numerics.verdict import ELEMENT_SHARE

#: Exponents e of the step 2^−e, by significand bits: that of the first look in float64, and about
#: ε^⅓ in float32, where truncation and roundoff of a central difference are equal.
STEP = {53: 17, 24: 8}

#: The step for a second look, if the first was too noisy (coarser), or not small enough (finer).
COARSER = {53: 9, 24: 5}
FINER = {53: 22, 24: 11}

#: A look settles an input if its error bar is below the rtol of the call, as a share of ‖g∘u‖,
#: since nothing raises below that, but never above this share (heuristic: the resolution that a
#: pass needs in float32). An error of a single entry of the Jacobian that is below atol does not
#: raise either.
COARSEST = 3e-2

#: The directions: one that gives every element a share of its own in the sum, so that no two equal
#: errors cancel, and one of plain signs, in which a single wrong element shows best.
KINDS = ("random", "signs")

#: A residual above this share of what is allowed, and above its own noise, may be a larger error of
#: which most has cancelled along that direction: then a third direction is looked along (heuristic:
#: without it, one seed in 75 passed four gradients that were all 1 % too large).
DOUBTFUL = 0.01


def unsettled(judged: Map, options: Options) -> list[int]:
    """Positions of the inputs whose claimed gradient is not clearly that of the function.

    It takes one backward, and four or six evaluations for each input.
    """
    generator = torch.Generator().manual_seed(options.seed)
    # An output below atol keeps its size: enlarged, it would drown the others in its rounding.
    vs = [
        cotangent(y if rms(y) > options.atol else torch.ones_like(y), generator)
        for y in judged.outputs
    ]
    gradients = judged.gradients_at(judged.values, vs)
    return [
        index
        for index, gradient in enumerate(gradients)
        if not _settled(_Look(judged, index, vs, gradient), options, generator)
    ]


@dataclass(frozen=True)
class _Look:
    """Looks at the gradient of one input under one set of cotangents."""

    judged: Map
    index: int
    cotangents: Sequence[torch.Tensor]
    gradient: torch.Tensor

    @property
    def x(self) -> torch.Tensor:
        return self.judged.values[self.index]

    def along(self, u: torch.Tensor, exponent: int) -> Step | None:
        return difference(
            along(self.judged, self.index),
            self.x,
            u,
            self.cotangents,
            self.gradient,
            2.0**-exponent,
            self.judged.rounding,
        )


def _settled(look: _Look, options: Options, generator: torch.Generator) -> bool:
    bits = working_bits(look.judged, look.x)
    if not look.x.numel() or bits not in STEP:
        return not look.x.numel()
    share = min(options.rtol, COARSEST)
    weight = min((float(v.abs().min()) for v in look.cotangents if v.numel()), default=0.0)
    shows_elements, exponent = False, STEP[bits]
    kinds = list(KINDS[: look.x.numel()])
    for kind in kinds:  # which may grow
        u = look.judged.projected(look.index, direction(kind, look.x, look.gradient, generator))
        products = (widened(look.gradient) * u).abs()
        top, size = float(products.max()), norm(products)
        entry = options.atol * weight * float(u.abs().min())
        allowed = max(share * size, entry)
        bar, exponent, clear = _bar(look, u, bits, exponent, allowed)
        if not bar <= allowed:
            return False
        if not clear and len(kinds) == len(KINDS):
            kinds.append("random")
        shows_elements = shows_elements or bar <= max(ELEMENT_SHARE * top, entry)
    return shows_elements


def _bar(
    look: _Look, u: torch.Tensor, bits: int, exponent: int, allowed: float
) -> tuple[float, int, bool]:
    """The error bar of a look along ``u``, its exponent, and whether its residual is far below
    ``allowed``; of a second look, with another step, if the first bar is above ``allowed``."""
    first = look.along(u, exponent)
    bar = float("inf") if first is None else at_a_glance(first).bar
    if bar <= allowed or exponent != STEP[bits]:
        return bar, exponent, _clear(first, allowed)
    noisy = first is not None and CRITICAL * first.noise > abs(first.residual)
    exponent = (COARSER if noisy else FINER)[bits]
    second = look.along(u, exponent)
    bar = float("inf") if second is None else at_a_glance(second).bar
    return bar, exponent, _clear(second, allowed)


def _clear(step: Step | None, allowed: float) -> bool:
    return step is not None and abs(step.residual) <= max(DOUBTFUL * allowed, step.noise)
