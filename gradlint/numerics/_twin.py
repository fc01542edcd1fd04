"""Gradients in low precision against those of the same op in float64, element by element.

For the same cotangent v, g is what backward returns in the low dtype and g₆₄ what it returns in
float64. An element differs where

    |g − g₆₄| > F·s + C·ε·|g₆₄| + c·ε·rms(g₆₄),     s = rms over draws of |g̃ − g₆₄|

where g̃ is the float64 gradient computed again with the rounding of the low dtype emulated
(:mod:`gradlint.numerics._emulate`): the error that this computation needs must have in this dtype,
whatever its conditioning, saved results and saturation. Where rounding flips a branch, g̃ flips in
some draws too. Besides the elements, the scale of the whole is judged: ⟨g − g₆₄, g₆₄⟩ averages the
noise of the elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from gradlint.numerics._differences import significand_bits
from gradlint.numerics._directions import cotangent
from gradlint.numerics._emulate import Rounding
from gradlint.numerics._judge import AGREES, DIFFERS, HONEST, UNSURE
from gradlint.numerics._map import Map
from gradlint.numerics._products import norm, real_dot, rms, unit_roundoff, widened

#: Independent cotangents under which the two are compared.
COTANGENTS = 2

#: Emulated runs for each cotangent, and those that follow where an element differs.
DRAWS = 4
MORE_DRAWS = 16

#: Deviations s that an element may be off (heuristic: s itself is uncertain by a half).
DEVIATIONS = 6.0

#: Noise of the runs that look for flipped branches, in units of rounding's own: what one rounding
#: can flip, these flip in about every second run.
FLIPPING_NOISE = 4.0
FLIPPING_DRAWS = 24

#: An element that some emulated run moves by this share of the disagreement is not judged.
REPRODUCED = 0.5

#: C and c, and the allowance for the scale, in units of ε, by significand bits. One rounding is
#: ε/2. Float32 has room to spare and kernels that add up thousands of terms one by one; in 16 bits
#: sums are taken in float32 (heuristic).
ULPS = {24: 16.0, 11: 1.0, 8: 1.0}
ULPS_OF_SCALE = {24: 16.0, 11: 2.0, 8: 2.0}

#: Something out of sight computed the gradient (a kernel of the op's own): deviations count this
#: many times in float32, since it may add up in any order.
UNSEEN = {24: 16.0, 11: 2.0, 8: 2.0}

#: Beyond this share of outputs that disagree, the op computes something else in float64 (other
#: random numbers, another branch); below, those outputs are left out.
OTHER_FUNCTION = 0.05

#: Elements below this share of the largest say nothing about the resolution.
SMALL = 0.1

#: Worst elements kept as evidence.
SHOWN = 3


@dataclass(frozen=True)
class TwinElement:
    """One element: flat index, value in the low dtype, value in float64, difference allowed."""

    index: int
    low: complex
    wide: complex
    allowed: float


@dataclass
class TwinJudgement:
    """The verdict on one input.

    Args:
        index: position of the input.
        verdict: "agrees", "differs" or "unsure".
        resolution: smallest relative error that would have been seen in every second one of the
            elements that are at least a tenth of the largest; inf where none was judged.
        worst: the elements farthest beyond what is allowed, or nearest to it; the worst first.
        reason: why nothing could be told, or what differs, in words.
        differing, judged, unjudged: numbers of elements, under the clearest cotangent.
        scale: factor by which the gradient as a whole is off where that is what differs, or None.
    """

    index: int
    verdict: str = UNSURE
    resolution: float = math.inf
    worst: list[TwinElement] = field(default_factory=list)
    reason: str = ""
    differing: int = 0
    judged: int = 0
    unjudged: int = 0
    scale: float | None = None


def compare(
    low: Map, twin: Map, *, seed: int, inputs: Sequence[int] | None = None
) -> list[TwinJudgement]:
    """Judge the gradients of ``low`` by those of ``twin``, the same function in float64.

    Args:
        low: the map in float32, bfloat16 or float16.
        twin: the same op at the same values, widened; its own gradients are taken to be right.
        seed: of cotangents and of the emulated rounding.
        inputs: positions to judge; default all.
    """
    wanted = list(range(len(low.values)) if inputs is None else inputs)
    comparison = _Comparison(low, twin, seed)
    masks = comparison.agreeing_outputs()
    if isinstance(masks, str):
        return [TwinJudgement(index, reason=masks) for index in wanted]
    views = [comparison.look(masks) for _ in range(COTANGENTS)]
    found = [comparison.worst(views, index) for index in wanted]
    fresh = comparison.look(masks) if any(item.verdict == DIFFERS for item in found) else None
    for place, item in enumerate(found):
        if item.verdict != DIFFERS or fresh is None:
            continue
        found[place] = comparison.confirmed(views, item.index)
        if (
            found[place].verdict == DIFFERS
            and comparison.weigh(fresh, item.index).verdict != DIFFERS
        ):
            reason = "differed once and not again under a fresh cotangent"
            found[place] = TwinJudgement(item.index, reason=reason)
    return found


@dataclass
class _View:
    """Both gradients under one cotangent, and how far emulated rounding moves the wide one."""

    cotangents: list[torch.Tensor]
    low: list[torch.Tensor]
    wide: list[torch.Tensor]
    squares: list[torch.Tensor]
    scales: list[float]
    draws: int = 0
    farthest: list[torch.Tensor] = field(default_factory=list)


class _Comparison:
    def __init__(self, low: Map, twin: Map, seed: int) -> None:
        self.low, self.twin = low, twin
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = _coarsest([*low.values, *low.outputs])
        self.bits = significand_bits(self.dtype)
        self.opaque = False
        self.emulated = True

    # -- the two functions ---------------------------------------------------------------------

    def agreeing_outputs(self) -> list[torch.Tensor] | str:
        """For each output True where both dtypes give the same; or why this is no twin."""
        low, twin = self.low, self.twin
        if [y.shape for y in low.outputs] != [y.shape for y in twin.outputs]:
            return "other outputs in float64"
        if not self._computes():
            return "it computes in lower precision in float64 too"
        masks = [self._close(a, b, None) for a, b in zip(low.outputs, twin.outputs, strict=True)]
        if all(bool(mask.all()) for mask in masks):
            return masks
        spreads = self._output_spreads()
        masks = [
            self._close(a, b, s) for a, b, s in zip(low.outputs, twin.outputs, spreads, strict=True)
        ]
        total = sum(mask.numel() for mask in masks)
        if sum(int((~mask).sum()) for mask in masks) > OTHER_FUNCTION * total:
            return "its outputs in float64 are others than rounding explains"
        return masks

    def _computes(self) -> bool:
        """Whether moves far below the resolution of the low dtype show in the twin at all."""
        share = unit_roundoff(self.dtype) / 8.0
        moved = [
            (x * (1.0 + share * self._signs(x))).to(x.dtype) if x.is_floating_point() else x
            for x in self.twin.values
        ]
        outputs = self.twin.evaluate(moved)
        if outputs is None:
            return True
        return any(
            a.shape != b.shape or not torch.equal(a, b)
            for a, b in zip(outputs, self.twin.outputs, strict=True)
        )

    def _signs(self, like: torch.Tensor) -> torch.Tensor:
        drawn = torch.randint(0, 2, tuple(like.shape), generator=self.generator)
        return (2 * drawn - 1).to(like.device, torch.float64)

    def _close(
        self, low: torch.Tensor, wide: torch.Tensor, spread: torch.Tensor | None
    ) -> torch.Tensor:
        low, wide = widened(low), widened(wide)
        same = (low == wide) | (torch.isnan(low.abs()) & torch.isnan(wide.abs()))
        allowed = self._floor(wide)
        if spread is not None:
            allowed = allowed + self._deviations * spread
        return same | ((low - wide).abs() <= allowed)

    def _floor(self, wide: torch.Tensor) -> torch.Tensor:
        info = torch.finfo(self.dtype)
        magnitude = wide.abs()
        typical = rms(magnitude[torch.isfinite(magnitude)])
        return ULPS[self.bits] * (
            info.eps * (magnitude + typical) + info.smallest_normal * info.eps
        )

    @property
    def _deviations(self) -> float:
        return DEVIATIONS * (UNSEEN[self.bits] if self.opaque or not self.emulated else 1.0)

    def _output_spreads(self) -> list[torch.Tensor]:
        squares = [torch.zeros_like(widened(y).abs()) for y in self.twin.outputs]
        for _ in range(DRAWS):
            with self._rounding():
                outputs = self.twin.evaluate(self._values())
            for square, y, base in zip(
                squares, outputs or self.twin.outputs, self.twin.outputs, strict=True
            ):
                square += _moved(y, base) ** 2
        return [(square / DRAWS).sqrt() for square in squares]

    # -- one cotangent -------------------------------------------------------------------------

    def look(self, masks: Sequence[torch.Tensor]) -> _View:
        """Both gradients under a fresh cotangent, zero where outputs disagree."""
        vs = []
        for y, mask in zip(self.low.outputs, masks, strict=True):
            vs.append(cotangent(y, self.generator) * mask)
        wide_vs = [v.to(y.dtype) for v, y in zip(vs, self.twin.outputs, strict=True)]
        low = [widened(g) for g in self.low.gradients_at(self.low.values, vs)]
        wide = [widened(g) for g in self.twin.gradients_at(self.twin.values, wide_vs)]
        squares = [torch.zeros_like(g.abs()) for g in wide]
        view = _View(wide_vs, low, wide, squares, [0.0] * len(wide))
        self.draw(view, DRAWS)
        return view

    def draw(self, view: _View, count: int) -> None:
        """Add ``count`` emulated runs to the spread of ``view``."""
        for _ in range(count):
            found = self._emulated(view)
            for index, (g, base) in enumerate(zip(found, view.wide, strict=True)):
                view.squares[index] += _moved(g, base) ** 2
                view.scales[index] += _off_scale(widened(g), base) ** 2
            view.draws += 1

    def _emulated(self, view: _View, noise: float = 1.0) -> list[torch.Tensor]:
        try:
            with self._rounding(noise):
                return self.twin.gradients_at(*self._point(view))
        except Exception:  # the op minds being emulated: its inputs are moved instead
            if not self.emulated:
                raise
            self.emulated = False
            return self.twin.gradients_at(*self._point(view))

    def _point(self, view: _View) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        if self.opaque or not self.emulated:
            return self._values(), [self._beside(v) for v in view.cotangents]
        return self.twin.values, view.cotangents

    @contextmanager
    def _rounding(self, noise: float = 1.0) -> Iterator[None]:
        if not self.emulated:
            yield
            return
        mode = Rounding(torch.float64, self.dtype, self.generator, noise)
        with mode:
            yield
        self.opaque |= mode.opaque

    def _values(self) -> list[torch.Tensor]:
        if self.opaque or not self.emulated:
            return [self._beside(x) for x in self.twin.values]
        return self.twin.values

    def _beside(self, value: torch.Tensor) -> torch.Tensor:
        """Every element moved by up to one unit of the low dtype: where nothing is seen of a
        computation, its conditioning says what rounding does to it."""
        if not (value.is_floating_point() or value.is_complex()):
            return value
        steps = torch.randint(-1, 2, tuple(value.shape), generator=self.generator)
        return value * (1.0 + unit_roundoff(self.dtype) * steps.to(value))

    # -- one input -----------------------------------------------------------------------------

    def worst(self, views: Sequence[_View], index: int) -> TwinJudgement:
        """The verdict on input ``index`` under the cotangents of ``views``, by few draws."""
        found = [self.weigh(view, index) for view in views]
        differing = [item for item in found if item.verdict == DIFFERS]
        if differing:
            return max(differing, key=lambda item: item.differing)
        return max(found, key=lambda item: (item.verdict == UNSURE, item.resolution))

    def confirmed(self, views: Sequence[_View], index: int) -> TwinJudgement:
        """The same by many draws, where flipped branches are told apart."""
        for view in views:
            if self.weigh(view, index).verdict != DIFFERS:
                continue
            if view.draws <= DRAWS:
                self.draw(view, MORE_DRAWS)
            found = self.weigh(view, index)
            if found.verdict == DIFFERS:
                found = self.weigh(view, index, self._flipped(view, index))
            if found.verdict == DIFFERS:
                return found
        return found

    def _flipped(self, view: _View, index: int) -> torch.Tensor:
        """True where louder rounding moves an element about as far as the disagreement."""
        if not view.farthest:
            view.farthest = [torch.zeros_like(square) for square in view.squares]
            for _ in range(FLIPPING_DRAWS):
                found = self._emulated(view, FLIPPING_NOISE)
                view.farthest = [
                    torch.maximum(far, _moved(g, base))
                    for far, g, base in zip(view.farthest, found, view.wide, strict=True)
                ]
        error = (view.low[index] - view.wide[index]).abs()
        return view.farthest[index] >= REPRODUCED * error

    def weigh(self, view: _View, index: int, flipped: torch.Tensor | None = None) -> TwinJudgement:
        low, wide = view.low[index], view.wide[index]
        if low.shape != wide.shape or not wide.numel():
            return TwinJudgement(index, AGREES if not wide.numel() else UNSURE, 0.0)
        spread = (view.squares[index] / max(view.draws, 1)).sqrt()
        allowed = self._deviations * spread + self._floor(wide)
        error = (low - wide).abs()
        error = torch.where(torch.isnan(error), torch.full_like(error, math.inf), error)
        judged = torch.isfinite(allowed) & torch.isfinite(wide.abs())
        if flipped is not None:
            judged &= ~(flipped & (error > allowed))
        result = TwinJudgement(index, judged=int(judged.sum()), unjudged=int((~judged).sum()))
        wrong = judged & (error > allowed)
        result.differing = int(wrong.sum())
        result.worst = _worst_elements(low, wide, error, allowed, judged)
        result.resolution = _resolution(wide, allowed, judged)
        good = torch.where(judged & ~wrong, wide, torch.zeros_like(wide))
        off = _off_scale(torch.where(judged & ~wrong, low, torch.zeros_like(low)), good)
        noise = self._deviations * math.sqrt(view.scales[index] / max(view.draws, 1))
        if result.differing:
            result.verdict = DIFFERS
        elif abs(off) > noise + ULPS_OF_SCALE[self.bits] * unit_roundoff(self.dtype):
            result.verdict, result.scale = DIFFERS, 1.0 + off
        elif not result.resolution <= HONEST[self.bits] and bool((wide != 0).any()):
            result.reason = "rounding in this dtype leaves too little of the gradient"
        else:
            result.verdict = AGREES
        return result


def _moved(found: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """|found − base|; inf where one is not finite and they are not the same."""
    a, b = widened(found), widened(base)
    moved = (a - b).abs()
    same = (a == b) | (torch.isnan(a.abs()) & torch.isnan(b.abs()))
    return torch.where(same, torch.zeros_like(moved), moved.nan_to_num(nan=math.inf))


def _off_scale(found: torch.Tensor, base: torch.Tensor) -> float:
    """Re⟨found − base, base⟩ / ⟨base, base⟩: by what share the whole is too large."""
    weight = norm(base) ** 2
    return real_dot(base, found - base) / weight if weight > 0.0 else 0.0


def _worst_elements(
    low: torch.Tensor,
    wide: torch.Tensor,
    error: torch.Tensor,
    allowed: torch.Tensor,
    judged: torch.Tensor,
) -> list[TwinElement]:
    excess = torch.where(judged, error / allowed, torch.full_like(error, -1.0)).flatten()
    order = torch.topk(excess, min(SHOWN, excess.numel())).indices.tolist()
    return [
        TwinElement(
            place,
            low.flatten()[place].item(),
            wide.flatten()[place].item(),
            float(allowed.flatten()[place]),
        )
        for place in order
        if float(excess[place]) >= 0.0
    ]


def _resolution(wide: torch.Tensor, allowed: torch.Tensor, judged: torch.Tensor) -> float:
    magnitude = torch.where(torch.isfinite(wide.abs()), wide.abs(), torch.zeros_like(allowed))
    top = float(magnitude.max())
    if top == 0.0:
        return float(allowed.max())
    large = magnitude >= SMALL * top
    ratio = torch.where(judged, allowed / magnitude, torch.full_like(allowed, math.inf))[large]
    return float(ratio.median())


def _coarsest(tensors: Sequence[torch.Tensor]) -> torch.dtype:
    floating = [t for t in tensors if t.is_floating_point() or t.is_complex()]
    chosen = max(floating, key=lambda t: unit_roundoff(t.dtype)).dtype
    return chosen.to_real()
