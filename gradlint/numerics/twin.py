"""Compare gradients in low precision with those of the same op in float64, element by element.

For the same cotangent v, g is what backward returns in the low dtype and g₆₄ what it returns in
float64. An element differs if

    |g − g₆₄| > F·s + C·ε·(|g₆₄| + rms(g₆₄)),     s = rms over draws of |g̃ − g₆₄|

where g̃ is the float64 gradient computed again with the rounding of the low dtype emulated
(:mod:`gradlint.numerics.emulated_rounding`). So s is the error that this computation inevitably has
in this dtype, including its conditioning, its saved results and its saturation. If rounding flips a
branch, g̃ flips in some draws too. Besides the elements, the scale of the whole gradient is judged:
⟨g − g₆₄, g₆₄⟩ averages the noise of the elements.

Source: gradlint/docs/numerics.md, section "Float64 twin".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from gradlint.numerics._common_draws import with_common_draws
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.directions import cotangent
from gradlint.numerics.emulated_rounding import RoundedRuns
from gradlint.numerics.gradient_scale import SHARE_OF_OUTPUT
from gradlint.numerics.map import Map
from gradlint.numerics.products import norm, real_dot, rms, unit_roundoff, widened
from gradlint.numerics.verdict import AGREES, DIFFERS, MIN_RESOLUTION, UNSURE

#: Elements below this share of the largest one do not count for the resolution (heuristic).
SMALL = 0.1

#: Number of worst elements kept as evidence.
SHOWN = 3

#: Number of independent cotangents under which the two gradients are compared.
COTANGENTS = 2

#: Number of fresh cotangents, one of which must confirm a difference. One would not do: if a single
#: element is wrong, its gradient may be tiny under that cotangent.
FRESH = 2

#: Emulated runs for each cotangent, and further ones if an element differs.
DRAWS = 4
MORE_DRAWS = 16

#: F: number of deviations s by which an element may be off (heuristic: s itself is uncertain by a
#: half, and the largest of many elements is compared).
DEVIATIONS = 6.0

#: Noise of the runs that look for flipped branches, in units of ordinary rounding, and their
#: number. A branch that one rounding can flip is flipped in about every second of these runs.
FLIPPING_NOISE = 4.0
FLIPPING_DRAWS = 24

#: An element is not judged if one of those runs moves it by REPRODUCED of its disagreement, unless
#: LOUDEST deviations of the element's ordinary noise would move it as far.
REPRODUCED = 0.5
LOUDEST = 4.0

#: C, and the allowance for the scale, in units of ε, by significand bits; one rounding is ε/2
#: (heuristic: float32 has digits to spare, and kernels that add up thousands of terms one by one;
#: in 16 bits, sums are accumulated in float32).
ULPS = {24: 16.0, 11: 1.0, 8: 1.0}
ULPS_OF_SCALE = {24: 16.0, 11: 2.0, 8: 2.0}

#: Factor on the deviations if part of the computation cannot be emulated, since it may add up in
#: any order (heuristic).
UNSEEN = {24: 16.0, 11: 2.0, 8: 2.0}

#: If more than this share of the outputs disagrees, the op computes a different function in float64
#: (other random numbers, another branch); if fewer do, those outputs are left out (heuristic).
OTHER_FUNCTION = 0.05

#: Order in which verdicts under several cotangents outrank each other.
_RANK = {AGREES: 0, UNSURE: 1, DIFFERS: 2}


@dataclass(frozen=True)
class TwinElement:
    """One element: flat index, value in the low dtype, value in float64, allowed difference."""

    index: int
    low: complex
    wide: complex
    allowed: float


@dataclass
class TwinView:
    """Both gradients under one cotangent, and how far emulated rounding moves the float64 one.

    Args:
        dtype: the low dtype.
        cotangents: one per output, widened to float64.
        low, wide: gradients of all inputs, both as float64 tensors.
        squares: sum over draws of the squared change of each element.
        scales: sum over draws of the squared change of scale of each gradient.
        draws: number of emulated runs.
        farthest: the largest change of each element in runs with louder rounding, once those ran.
    """

    dtype: torch.dtype
    cotangents: list[torch.Tensor]
    low: list[torch.Tensor]
    wide: list[torch.Tensor]
    squares: list[torch.Tensor]
    scales: list[float]
    draws: int = 0
    farthest: list[torch.Tensor] = field(default_factory=list)


@dataclass
class TwinJudgement:
    """The verdict on one input.

    Args:
        index: position of the input.
        verdict: "agrees", "differs" or "unsure".
        resolution: median of the smallest relative errors that would have been noticed in judged
            elements of at least a tenth of the largest; inf if none was judged.
        elements: the elements farthest beyond the allowed difference or nearest to it, worst first.
        reason: why the comparison is inconclusive.
        compared: whether the two are the same function and could be compared at all.
        differing, judged, unjudged: numbers of elements, under the clearest cotangent.
        scale: factor by which the whole gradient is off, if that is what differs.
        views: the evidence for the verdict "differs".
        allowed: the allowed difference of each element, under each of ``views``.
    """

    index: int
    verdict: str = UNSURE
    resolution: float = math.inf
    elements: list[TwinElement] = field(default_factory=list)
    reason: str = ""
    compared: bool = True
    differing: int = 0
    judged: int = 0
    unjudged: int = 0
    scale: float | None = None
    views: list[TwinView] = field(default_factory=list)
    allowed: list[torch.Tensor] = field(default_factory=list)


def moved(found: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """|found − base|; inf where one is not finite, unless both are equal or both NaN."""
    a, b = widened(found), widened(base)
    if a.shape != b.shape:
        return torch.full_like(b.abs(), math.inf)
    moved = (a - b).abs()
    same = (a == b) | (torch.isnan(a.abs()) & torch.isnan(b.abs()))
    return moved.nan_to_num(nan=math.inf, posinf=math.inf).where(~same, 0.0)


def off_scale(found: torch.Tensor, base: torch.Tensor) -> float:
    """Re⟨found − base, base⟩ / ⟨base, base⟩: the share by which the whole is too large."""
    size = norm(base)
    weight = size * size
    return real_dot(base, found - base) / weight if weight > 0.0 else 0.0


def worst_elements(
    low: torch.Tensor,
    wide: torch.Tensor,
    error: torch.Tensor,
    allowed: torch.Tensor,
    judged: torch.Tensor,
) -> list[TwinElement]:
    """The elements that exceed the allowed difference the most, or come nearest to it."""
    excess = (error / allowed).where(judged, -1.0).flatten()
    flat = [tensor.flatten() for tensor in (low, wide, allowed)]
    return [
        TwinElement(place, *(tensor[place].item() for tensor in flat))
        for place in torch.topk(excess, min(SHOWN, excess.numel())).indices.tolist()
        if float(excess[place]) >= 0.0
    ]


def resolving_power(wide: torch.Tensor, allowed: torch.Tensor, judged: torch.Tensor) -> float:
    """Median of allowed/|wide| over the judged elements that are not small; inf if none is."""
    magnitude, allowed = wide.abs()[judged], allowed[judged]
    if not magnitude.numel():
        return math.inf
    top = float(magnitude.max())
    if top == 0.0:
        return float(allowed.max())
    large = magnitude >= SMALL * top
    return float((allowed / magnitude)[large].median())


def compare(
    low: Map, twin: Map, *, seed: int, inputs: Sequence[int] | None = None
) -> list[TwinJudgement]:
    """Judge the gradients of ``low`` by those of ``twin``, the same function in float64.

    Args:
        low: the map in float32, bfloat16 or float16.
        twin: the same op at the same values in float64; its gradients are assumed to be right.
        seed: seed of cotangents and of the emulated rounding.
        inputs: positions to judge; default all.
    """
    wanted = list(range(len(low.values)) if inputs is None else inputs)
    comparison = _Comparison(low, twin, seed)
    masks = comparison.agreeing_outputs()
    if isinstance(masks, str):
        redrawn = with_common_draws(twin, comparison.dtype)
        if redrawn is not None:
            comparison = _Comparison(low, redrawn, seed)
            masks = comparison.agreeing_outputs()
    if isinstance(masks, str):
        return [TwinJudgement(index, reason=masks, compared=False) for index in wanted]
    views = []
    for _ in range(COTANGENTS):
        view = comparison.look(masks)
        if view is None:
            reason = "backward raises in float64"
            return [TwinJudgement(index, reason=reason, compared=False) for index in wanted]
        views.append(view)
    found = [comparison.worst(views, index) for index in wanted]
    if not any(item.verdict == DIFFERS for item in found):
        return found
    fresh = [view for _ in range(FRESH) if (view := comparison.look(masks)) is not None]
    return [
        comparison.confirmed(views, fresh, item.index) if item.verdict == DIFFERS else item
        for item in found
    ]


class _Comparison:
    def __init__(self, low: Map, twin: Map, seed: int) -> None:
        self.low, self.twin = low, twin
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = _coarsest([t.dtype for t in (*low.values, *low.outputs)], twin.stands_for)
        self.bits = significand_bits(self.dtype)
        self.runs = RoundedRuns(twin, self.dtype, self.generator)

    def agreeing_outputs(self) -> list[torch.Tensor] | str:
        """For each output, True where both dtypes agree; or why they are not comparable."""
        low, twin = self.low, self.twin
        if [y.shape for y in low.outputs] != [y.shape for y in twin.outputs]:
            return "it returns other outputs in float64"
        if not self.runs.compute_finer():
            return "it computes in lower precision in float64 too"
        spreads = [torch.zeros_like(widened(y).abs()) for y in twin.outputs]
        masks = self._close(spreads)
        if all(bool(mask.all()) for mask in masks):
            return masks
        for _ in range(DRAWS):
            outputs = self.runs.outputs() or twin.outputs
            for spread, y, base in zip(spreads, outputs, twin.outputs, strict=True):
                spread += moved(y, base) ** 2
        masks = self._close([(spread / DRAWS).sqrt() for spread in spreads])
        total = sum(mask.numel() for mask in masks)
        if sum(int((~mask).sum()) for mask in masks) > OTHER_FUNCTION * total:
            return "its outputs in float64 differ by more than rounding"
        return masks

    def _close(self, spreads: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        masks = []
        for y, other, spread in zip(self.low.outputs, self.twin.outputs, spreads, strict=True):
            allowed = self._floor(widened(other)) + self._deviations * spread
            masks.append(moved(y, other) <= allowed)
        return masks

    def look(self, masks: Sequence[torch.Tensor]) -> TwinView | None:
        """Both gradients under a fresh cotangent, which is zero where outputs disagree; None if
        backward raises in float64."""
        vs = [
            cotangent(y, self.generator) * mask
            for y, mask in zip(self.low.outputs, masks, strict=True)
        ]
        wide_vs = [v.to(y.dtype) for v, y in zip(vs, self.twin.outputs, strict=True)]
        low = [widened(g) for g in self.low.gradients_at(self.low.values, vs)]
        try:
            wide = [widened(g) for g in self.twin.gradients_at(self.twin.values, wide_vs)]
        except Exception:  # the user's backward may raise anything
            return None
        squares = [torch.zeros_like(g.abs()) for g in wide]
        view = TwinView(self.dtype, wide_vs, low, wide, squares, [0.0] * len(wide))
        self._draw(view, DRAWS)
        return view

    def _draw(self, view: TwinView, count: int) -> None:
        """Add ``count`` emulated runs to the spread of ``view``."""
        for _ in range(count):
            found = self.runs.gradients(view.cotangents)
            for index, (g, base) in enumerate(zip(found, view.wide, strict=True)):
                view.squares[index] += moved(g, base) ** 2
                view.scales[index] += off_scale(widened(g), base) ** 2
            view.draws += 1

    def _flipped(self, view: TwinView, index: int) -> torch.Tensor:
        """True where louder rounding moves an element about as far as the disagreement, and farther
        than ordinary noise scaled to that loudness: there, rounding flips a branch."""
        if not view.farthest:
            view.farthest = [torch.zeros_like(square) for square in view.squares]
            for _ in range(self.runs.affordable(FLIPPING_DRAWS)):
                found = self.runs.gradients(view.cotangents, FLIPPING_NOISE)
                view.farthest = [
                    torch.maximum(far, moved(g, base))
                    for far, g, base in zip(view.farthest, found, view.wide, strict=True)
                ]
        spread = (view.squares[index] / view.draws).sqrt()
        far = view.farthest[index]
        reproduced = far >= REPRODUCED * moved(view.low[index], view.wide[index])
        return reproduced & (far > LOUDEST * FLIPPING_NOISE * spread)

    def worst(self, views: Sequence[TwinView], index: int) -> TwinJudgement:
        """The most severe verdict on input ``index`` among ``views``, from few emulated runs."""
        found = [self._weigh(view, index) for view in views]
        return max(found, key=lambda item: (_RANK[item.verdict], item.differing, item.resolution))

    def confirmed(
        self, views: Sequence[TwinView], fresh: Sequence[TwinView], index: int
    ) -> TwinJudgement:
        """The same from many emulated runs, with flipped branches excluded, and confirmed under one
        of the fresh cotangents."""
        judged = TwinJudgement(index)
        for place, view in enumerate(views):
            judged = self._weigh(view, index)
            if judged.verdict == DIFFERS and view.draws == DRAWS:
                self._draw(view, self.runs.affordable(MORE_DRAWS))
                judged = self._weigh(view, index)
            if judged.verdict == DIFFERS:
                judged = self._weigh(view, index, self._flipped(view, index))
            if judged.verdict == DIFFERS:
                judged.views = [view, *views[:place], *views[place + 1 :]]
                break
        else:
            return judged
        if not any(self._weigh(view, index).verdict == DIFFERS for view in fresh):
            reason = "differed once, but not again under a fresh cotangent"
            return TwinJudgement(index, reason=reason)
        judged.allowed = [self._allowed(view, index) for view in judged.views]
        return judged

    @property
    def _deviations(self) -> float:
        return DEVIATIONS * (UNSEEN[self.bits] if self.runs.unseen else 1.0)

    def _floor(self, wide: torch.Tensor) -> torch.Tensor:
        info = torch.finfo(self.dtype)
        magnitude = wide.abs()
        typical = rms(magnitude[torch.isfinite(magnitude)])
        return ULPS[self.bits] * info.eps * (magnitude + typical + info.smallest_normal)

    def _allowed(self, view: TwinView, index: int) -> torch.Tensor:
        spread = (view.squares[index] / view.draws).sqrt()
        return self._deviations * spread + self._floor(view.wide[index])

    def _weigh(
        self, view: TwinView, index: int, flipped: torch.Tensor | None = None
    ) -> TwinJudgement:
        low, wide = view.low[index], view.wide[index]
        if not wide.numel():
            return TwinJudgement(index, AGREES, 0.0)
        if low.shape != wide.shape:
            return TwinJudgement(index, reason="its gradient has another shape in float64")
        allowed = self._allowed(view, index)
        error = moved(low, wide)
        judged = torch.isfinite(allowed) & torch.isfinite(wide.abs())
        if flipped is not None:
            judged &= ~(flipped & (error > allowed))
        wrong = judged & (error > allowed)
        result = TwinJudgement(
            index,
            resolution=resolving_power(wide, allowed, judged),
            elements=worst_elements(low, wide, error, allowed, judged),
            differing=int(wrong.sum()),
            judged=int(judged.sum()),
            unjudged=int((~judged).sum()),
        )
        kept = judged & ~wrong
        off = off_scale(low.where(kept, 0.0), wide.where(kept, 0.0))
        noise = self._deviations * math.sqrt(view.scales[index] / view.draws)
        if result.differing:
            result.verdict = DIFFERS
        elif abs(off) > noise + ULPS_OF_SCALE[self.bits] * unit_roundoff(self.dtype):
            result.verdict, result.scale = DIFFERS, 1.0 + off
        elif result.judged < result.unjudged or not self._resolved(view, result, allowed[judged]):
            result.reason = "rounding in this dtype leaves too little of the gradient"
        else:
            result.verdict = AGREES
        return result

    def _resolved(self, view: TwinView, result: TwinJudgement, allowed: torch.Tensor) -> bool:
        """Whether the comparison resolves enough. If the gradient vanishes, resolution is relative
        to the gradient of a function that is homogeneous in the input, ‖v∘f‖/‖x‖."""
        if result.resolution <= MIN_RESOLUTION[self.bits]:
            return True
        size = sum(norm(v * y) for v, y in zip(view.cotangents, self.twin.outputs, strict=True))
        usual = size / (norm(self.twin.values[result.index]) or 1.0)
        result.resolution = float(allowed.median()) / usual if usual > 0.0 else math.inf
        return result.resolution <= SHARE_OF_OUTPUT[self.bits]


def _coarsest(dtypes: Sequence[torch.dtype], inside: torch.dtype | None) -> torch.dtype:
    known = [dtype for dtype in dtypes if dtype.is_floating_point or dtype.is_complex]
    return max([*known, *([inside] if inside else [])], key=unit_roundoff).to_real()
