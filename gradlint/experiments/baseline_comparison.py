"""An op compared with itself: does an altered call return the same gradient?

The same values in another layout, under other flags or at another time must give the same gradient,
up to rounding in another order of summation. How much rounding is allowed is measured: g is the
gradient at the sample, g′ with inputs and cotangents moved by one unit roundoff, and gᵢ in
identical runs. An element differs when

    |aⱼ − gⱼ| > share·max|g| + ROUNDINGS·(|g′ⱼ − gⱼ| + median|g′ − g|) + 2·max_i |gᵢⱼ − gⱼ|
                + FEW·ε·max|v|·max|f| / rms(x).

The last term bounds the rounding error where a gradient of the usual size cancels to nothing.

Only elements near a kink, which a roundoff moves across it, get a wide tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.experiments.subject import Subject
from gradlint.numerics.products import all_finite, rms, unit_roundoff, widened
from gradlint.trace.op_io import OpRaised

#: Share of the largest element that another order of summation may change, by significand bits
#: (heuristic: ops that compute in float32 inside claim float64 too, so the float64 share is that of
#: float32; the faults that these comparisons look for are wrong in the first digit).
SHARES = {53: 1e-5, 24: 1e-3, 11: 2e-2, 8: 1e-1}

#: Multiple of the change under one unit roundoff that still counts as rounding (heuristic: sums of
#: thousands of terms in another order).
ROUNDINGS = 64.0

#: Roundings that remain of a gradient that cancels (heuristic).
FEW = 4.0

#: Identical runs after the first.
REPEATS = 2


@dataclass(frozen=True)
class Difference:
    """Where a gradient (or an output) differs from the baseline.

    Args:
        position: of the input (or output).
        name: its name.
        kind: "missing" (None), "shape", "NaN", "value".
        index: the worst element, where there is one.
        got, expected: its values, or shapes in words.
        error: |got − expected| there; infinite where it is not finite.
        count: how many elements differ; total: of how many.
    """

    position: int
    name: str
    kind: str
    index: list[int] | None
    got: Any
    expected: Any
    error: float
    count: int
    total: int

    def evidence(self) -> dict[str, Any]:
        """For a finding: the worst element as a table of one row, and the count."""
        if self.index is None:
            return {"got": self.got, "expected": self.expected}
        row = {
            "index": self.index,
            "returned": self.got,
            "expected": self.expected,
            "error": self.error,
        }
        return {"elements": [row], "differing": self.count, "measured_elements": self.total}


@dataclass
class Baseline:
    """What the op returns at its sample in unaltered calls.

    Args:
        cotangents: output name → cotangent.
        outputs: output name → value, detached.
        gradients: of every input, detached; None where the engine delivered none.
        repeats: gradients of identical runs after the first; where they are equal, the same tensor
            objects. They differ where the op is not deterministic.
        jittered: gradients with inputs and cotangents moved by one unit roundoff, or None.
        names: of the inputs; sizes: root of their mean square.
    """

    cotangents: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]
    gradients: list[torch.Tensor | None]
    repeats: list[list[torch.Tensor | None]]
    jittered: list[torch.Tensor | None] | None
    names: list[str]
    sizes: list[float]

    @property
    def repeatable(self) -> bool:
        """Whether identical runs gave the same gradients, bit by bit."""
        pairs = (zip(self.gradients, found, strict=True) for found in self.repeats)
        return all(a is b for both in pairs for a, b in both)

    def comparable_inputs(self) -> list[int]:
        """Positions of the inputs whose gradient is finite, or None."""
        return [
            position
            for position, gradient in enumerate(self.gradients)
            if gradient is None or all_finite(gradient)
        ]

    def differences(
        self, gradients: Sequence[torch.Tensor | None], *, among: Sequence[int] | None = None
    ) -> list[Difference]:
        """The worst element of every input whose gradient differs from the baseline's.

        Args:
            gradients: one an input.
            among: positions of the inputs compared; default all.
        """
        found = []
        for position in range(len(self.gradients)) if among is None else among:
            got, expected = gradients[position], self.gradients[position]
            if _same_bits(got, expected):
                continue  # identical: skip the costly tolerance
            allowed = self.allowed(position)
            difference = compare(position, self.names[position], got, expected, allowed)
            if difference is not None:
                found.append(difference)
        return found

    def allowed(self, position: int) -> torch.Tensor | None:
        """How far each element of the gradient of input ``position`` may be from the baseline's;
        None where the baseline has no gradient."""
        expected = self.gradients[position]
        if expected is None:
            return None
        wide = torch.nan_to_num(widened(expected), 0.0, 0.0, 0.0)
        top = float(wide.abs().max()) if wide.numel() else 0.0
        allowed = torch.full(wide.shape, share_of(expected.dtype) * top, dtype=torch.float64)
        allowed = allowed.to(wide.device)
        if self.jittered is not None:
            moved = _gap(self.jittered[position], expected)
            if moved is not None and moved.numel():
                allowed += ROUNDINGS * (moved + moved.median())
        for found in self.repeats:
            gap = None if found[position] is expected else _gap(found[position], expected)
            if gap is not None:
                allowed += 2.0 * gap
        return allowed + self.left_over(position)

    def left_over(self, position: int) -> float:
        """The rounding error of the gradient of input ``position`` where it cancels to nothing: a
        few roundings of max|v|·max|f| / rms(x), the size of an ordinary gradient."""
        expected = self.gradients[position]
        weights = [
            _top(v) * _top(self.outputs[name])
            for name, v in self.cotangents.items()
            if name in self.outputs
        ]
        usual = max(weights, default=0.0) / (self.sizes[position] or 1.0)
        if expected is None or not math.isfinite(usual):
            return 0.0
        return FEW * unit_roundoff(expected.dtype) * usual


def make_baseline(subject: Subject) -> Baseline | None:
    """The baseline of ``subject``; None where its run raised, or nothing is differentiable."""
    run, problem = subject.run, subject.problem
    if run.error is not None or run.gradients is None or problem.has_sparse_inputs:
        return None
    names = [item.name for item in problem.inputs]
    gradients = _detached(run.gradients)
    repeats: list[list[torch.Tensor | None]] = []
    outputs = {item.name: item.value.detach() for item in run.outputs}
    vs = dict(run.cotangents)
    try:
        if problem.zeroed:  # since the run, infinite outputs behind a mask count as zero
            outputs = {item.name: item.value.detach() for item in problem.forward()}
            for name, mask in problem.zeroed.items():
                vs[name] = vs[name].masked_fill(mask, 0.0)
            gradients = _detached(problem.pull(vs))
        for _ in range(REPEATS):
            repeats.append(share_equal_tensors(problem.pull(vs), gradients))
    except OpRaised:
        return None
    jittered: list[torch.Tensor | None] | None
    try:
        cotangents = {name: jitter(v, subject.seed) for name, v in vs.items()}
        values = [jitter(value, subject.seed + 1) for value in problem.values()]
        jittered = _detached(problem.pull(cotangents, values))
    except OpRaised:  # the sample lies at the edge of the domain
        jittered = None
    sizes = [0.0 if value.is_nested else rms(value) for value in problem.values()]
    return Baseline(vs, outputs, gradients, repeats, jittered, names, sizes)


def compare(
    position: int,
    name: str,
    got: torch.Tensor | None,
    expected: torch.Tensor | None,
    allowed: torch.Tensor | None,
) -> Difference | None:
    """The worst element in which ``got`` differs from ``expected``; None where they agree.

    NaN equals NaN, and a missing gradient equals a zero one, as in the engine.
    """
    if got is None or expected is None:
        there = expected if got is None else got
        if there is None or not bool(widened(there).count_nonzero()):
            return None
        was, now = ("None" if t is None else "a gradient" for t in (expected, got))
        count = there.numel()
        return Difference(position, name, "missing", None, now, was, math.inf, count, count)
    if got.shape != expected.shape:
        was, now = (str(list(t.shape)) for t in (expected, got))
        count = expected.numel()
        return Difference(position, name, "shape", None, now, was, math.inf, count, count)
    if _same_bits(got, expected):
        return None
    a, b = widened(got), widened(expected)
    equal = (a == b) | (a.isnan() & b.isnan())
    error = torch.where(equal, torch.zeros_like(b.abs()), (a - b).abs())
    bad = ~equal & ~(error <= (0.0 if allowed is None else allowed))
    if not bool(bad.any()):
        return None
    ranked = torch.nan_to_num(error, math.inf, math.inf, 0.0)
    flat = int(torch.where(bad, ranked, -torch.ones_like(ranked)).argmax())
    index = [int(k) for k in torch.unravel_index(torch.tensor(flat), b.shape)] if b.dim() else []
    finite = bool(torch.isfinite(a.reshape(-1)[flat]))
    return Difference(
        position,
        name,
        "value" if finite else "NaN",
        index,
        _shown(a.reshape(-1)[flat]),
        _shown(b.reshape(-1)[flat]),
        float(ranked.reshape(-1)[flat]),
        int(bad.sum()),
        b.numel(),
    )


def share_of(dtype: torch.dtype) -> float:
    """The entry of :data:`SHARES` for ``dtype``."""
    bits = 1 - round(math.log2(unit_roundoff(dtype)))
    return min((share for known, share in SHARES.items() if known <= bits), default=SHARES[8])


def _top(tensor: torch.Tensor) -> float:
    if tensor.is_nested or not tensor.numel() or tensor.dtype == torch.bool:
        return 0.0
    return float(torch.nan_to_num(widened(tensor).abs(), 0.0, 0.0, 0.0).max())


def _shown(element: torch.Tensor) -> float | str:
    value = element.item()
    return value if isinstance(value, float) else f"{value:.6g}"


def jitter(value: torch.Tensor, seed: int) -> torch.Tensor:
    """``value``·(1 ± one unit roundoff), signs at random."""
    dense = value.layout == torch.strided and not value.is_nested
    if not dense or not (value.is_floating_point() or value.is_complex()):
        return value
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, value.shape, generator=generator).to(value.device) * 2 - 1
    return value * (1.0 + unit_roundoff(value.dtype) * signs).to(value.dtype)


def _detached(gradients: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    return [None if g is None else g.detach().clone() for g in gradients]


def share_equal_tensors(
    gradients: Sequence[torch.Tensor | None], known: Sequence[torch.Tensor | None]
) -> list[torch.Tensor | None]:
    """Copies of ``gradients``; those that equal their counterparts in ``known`` are replaced by
    them, to save memory."""
    pairs = zip(_detached(gradients), known, strict=True)
    return [k if k is not None and _same_bits(g, k) else g for g, k in pairs]


def _gap(got: torch.Tensor | None, expected: torch.Tensor) -> torch.Tensor | None:
    if got is None or got.shape != expected.shape:
        return None
    return torch.nan_to_num((widened(got) - widened(expected)).abs(), 0.0, 0.0, 0.0)


def _same_bits(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """Whether two gradients are equal, NaN included; takes no more memory than they do."""
    if a is None or b is None or a is b:
        return a is b
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    wide_a, wide_b = widened(a), widened(b)
    same = torch.equal(wide_a, wide_b)
    return same or bool(((wide_a == wide_b) | (wide_a.isnan() & wide_b.isnan())).all())
