"""From a mismatch to its likely cause.

Each hypothesis turns what backward returned into what it should have returned if that were the
only fault; it explains the evidence if it then agrees with every measured element, under two
independent cotangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch

#: A hypothesis explains an element that it meets within this share of the largest measured one,
#: or within its error bar (heuristic; measured elements carry 8 digits or more in float64).
EXPLAINED = 1e-5

#: In units of the error bar, likewise.
BARS = 10.0


@dataclass
class Evidence:
    """One cotangent's worth of evidence about input ``index``.

    Args:
        index: position of the input among the differentiable ones.
        names: names of all differentiable inputs.
        claimed: the gradients returned for all of them.
        elements: flat positions measured in input ``index``.
        measured: the derivative at each of them.
        bars: their error bars.
        cotangents: what backward was given, one an output.
    """

    index: int
    names: Sequence[str]
    claimed: Sequence[torch.Tensor]
    elements: torch.Tensor
    measured: torch.Tensor
    bars: torch.Tensor
    cotangents: Sequence[torch.Tensor]

    @property
    def own(self) -> torch.Tensor:
        """The gradient returned for this input."""
        return self.claimed[self.index]


@dataclass(frozen=True)
class Cause:
    """A named cause.

    Args:
        slug: as in the JSON contract.
        text: one line for a reader, with how well it explains the evidence.
        help: what to change; ``{expression}`` stands for the source of the returned gradient.
        misfit: largest deviation left, relative to the largest measured element.
    """

    slug: str
    text: str
    help: str
    misfit: float = 0.0


def diagnose(evidence: Sequence[Evidence]) -> Cause | None:
    """The first cause, in order of specificity, that explains all of ``evidence``; else None."""
    usable = [item for item in evidence if bool(torch.isfinite(item.measured).any())]
    if not usable:
        return None
    name = usable[0].names[usable[0].index]
    if max(_largest(item.own) for item in usable) == 0.0:
        return Cause(
            "zero",
            f"zero: backward returns zeros for `{name}`, but the function depends on it",
            f"return the gradient with respect to `{name}`",
        )
    if all(_vanishes(item) for item in usable):
        return Cause(
            "straight-through",
            f"straight-through: forward is piecewise constant in `{name}`, so its derivative is "
            "zero; backward returns something else",
            f'if a surrogate is intended, declare it: surrogate = {{"{name}": "<expression>"}} '
            "on the class, or `surrogate:` in a spec",
        )
    for hypothesis in (
        _sign,
        _scaled,
        _transposed,
        _conjugate,
        _swapped,
        _passed_on,
        _ignores,
    ):
        cause = hypothesis(usable, name)
        if cause is not None:
            return cause
    return _pattern(usable, name)


# -- hypotheses ------------------------------------------------------------------------------------


def _sign(evidence: Sequence[Evidence], name: str) -> Cause | None:
    misfit = _misfit(evidence, [-item.own for item in evidence])
    if misfit is None:
        return None
    return Cause(
        "sign",
        f"sign: taken with the opposite sign it agrees{_to(misfit)}",
        f"return -({{expression}}) for `{name}`",
        misfit,
    )


def _scaled(evidence: Sequence[Evidence], name: str) -> Cause | None:
    numerator = denominator = 0.0
    for item in evidence:
        own, measured = _at(item, item.own), item.measured
        good = torch.isfinite(measured.abs())
        numerator += float((own[good].conj() * measured[good]).real.sum())
        denominator += float((own[good].conj() * own[good]).real.sum())
    if denominator == 0.0 or numerator == 0.0:
        return None
    factor = numerator / denominator
    misfit = _misfit(evidence, [item.own * factor for item in evidence])
    if misfit is None:
        return None
    shown = recognised(factor, evidence)
    return Cause(
        "scaled",
        f"scaled: the returned gradient times {shown} agrees{_to(misfit)}",
        f"multiply the gradient of `{name}` by {shown}",
        misfit,
    )


def _transposed(evidence: Sequence[Evidence], name: str) -> Cause | None:
    shape = evidence[0].own.shape
    if len(shape) < 2 or shape[-1] * shape[-2] <= 1:
        return None
    if shape[-1] == shape[-2]:
        candidates = [item.own.mT for item in evidence]
    else:  # a (K, N) result squeezed into (N, K) by a reshape
        candidates = [item.own.reshape(*shape[:-2], shape[-1], shape[-2]).mT for item in evidence]
    misfit = _misfit(evidence, candidates)
    if misfit is None:
        return None
    return Cause(
        "transposed",
        f"transposed: taken as .mT it agrees{_to(misfit)}",
        f"return ({{expression}}).mT for `{name}`",
        misfit,
    )


def _conjugate(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """The conjugate of all that was returned, or of its factor beside grad_output, v∘d → v∘conj(d)
    (of an elementwise function, whose cotangent has the gradient's shape)."""
    if not evidence[0].own.is_complex():
        return None
    misfit = _misfit(evidence, [item.own.conj() for item in evidence])
    if misfit is None:
        misfit = _misfit(evidence, [_factor_conjugated(item) for item in evidence])
    if misfit is None:
        return None
    return Cause(
        "conjugate",
        f"conjugate: with its complex conjugate it agrees{_to(misfit)}",
        f"return grad_output times the conjugate of the derivative for `{name}`: PyTorch's "
        "gradients are conjugate Wirtinger derivatives, so `{expression}` lacks a .conj()",
        misfit,
    )


def _factor_conjugated(item: Evidence) -> torch.Tensor:
    own = item.own
    for v in item.cotangents:
        if v.is_complex() and v.shape == own.shape and bool((v != 0).all()):
            return v * (own / v).conj()
    return own


def _swapped(evidence: Sequence[Evidence], name: str) -> Cause | None:
    first = evidence[0]
    for other, other_name in enumerate(first.names):
        if other == first.index or first.claimed[other].shape != first.own.shape:
            continue
        misfit = _misfit(evidence, [item.claimed[other] for item in evidence])
        if misfit is not None:
            return Cause(
                "swapped",
                f"swapped: what is returned for `{other_name}` is the gradient of `{name}`"
                f"{_to(misfit)}",
                f"return the gradients in the order of forward's arguments: exchange those of "
                f"`{name}` and `{other_name}`",
                misfit,
            )
    return None


def _passed_on(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """grad_output itself is returned although the function is no identity."""
    for item in evidence:
        if not any(
            v.shape == item.own.shape and torch.equal(v.to(item.own.dtype), item.own)
            for v in item.cotangents
        ):
            return None
    return Cause(
        "straight-through",
        f"straight-through: grad_output is returned unchanged for `{name}`, but the derivative of "
        "forward is not 1",
        f"multiply grad_output by the derivative with respect to `{name}`; if a straight-through "
        f'estimator is intended, declare it: surrogate = {{"{name}": "grad_output"}} on the class',
    )


def _ignores(evidence: Sequence[Evidence], name: str) -> Cause | None:
    if len(evidence) < 2:
        return None
    first, second = evidence[0], evidence[1]
    same = torch.allclose(first.own, second.own, rtol=1e-12, atol=0.0)
    if not same or all(
        torch.equal(a, b) for a, b in zip(first.cotangents, second.cotangents, strict=True)
    ):
        return None
    return Cause(
        "ignores-grad-output",
        f"ignores-grad-output: the gradient of `{name}` is the same whatever grad_output is",
        "multiply by grad_output (backward returns a vector-Jacobian product, not a derivative)",
    )


def _pattern(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """What the wrong elements have in common, when most elements are right."""
    item = evidence[0]
    shape = tuple(item.own.shape)
    wrong = wrong_elements(item)
    count = int(wrong.sum())
    if count == 0 or count > 0.5 * wrong.numel() or item.own.dim() == 0:
        return None
    positions = [unravel(int(e), shape) for e in item.elements[wrong]]
    if count == 1:
        where = list(positions[0])
        return Cause(
            "one-element",
            f"one-element: only element {where} of `{name}` is wrong",
            f"look at how backward treats element {where} (a boundary, an index, a leftover)",
        )
    for axis in range(len(shape)):
        values = {position[axis] for position in positions}
        if len(values) == 1 and shape[axis] > 1:
            at = values.pop()
            named = "last" if at == shape[axis] - 1 else "first" if at == 0 else f"number {at}"
            return Cause(
                "one-slice",
                f"one-slice: only index {at} ({named}) along axis {axis} of `{name}` is wrong",
                f"look at how backward treats index {at} of axis {axis}",
            )
    return None


# -- helpers ---------------------------------------------------------------------------------------


def wrong_elements(item: Evidence) -> torch.Tensor:
    """True for every measured element that the returned gradient misses, bars allowed for."""
    own, measured = _at(item, item.own), item.measured
    floor = EXPLAINED * max(_largest(measured), _largest(own))
    error = (own - measured).abs()
    return torch.isfinite(measured.abs()) & (error > torch.clamp(BARS * item.bars, min=floor))


def unravel(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The multi-index of position ``flat`` in a row-major tensor of ``shape``."""
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def recognised(factor: float, evidence: Sequence[Evidence]) -> str:
    """``factor`` in words where it is a simple fraction, or a size, or one over a size."""
    fraction = Fraction(factor).limit_denominator(16)
    if abs(float(fraction) - factor) <= EXPLAINED * abs(factor) and fraction != 0:
        return str(fraction)
    sizes = {evidence[0].own.numel(), *evidence[0].own.shape}
    for v in evidence[0].cotangents:
        sizes |= {v.numel(), *v.shape}
    for size in sorted(sizes):
        for value, shown in ((size, f"{size}"), (1 / size if size else 0, f"1/{size}")):
            if value and abs(value - factor) <= EXPLAINED * abs(factor):
                return shown
    return f"{factor:.6g}"


def _misfit(evidence: Sequence[Evidence], candidates: Sequence[torch.Tensor]) -> float | None:
    """Largest relative deviation of the candidates from the measurement; None if unexplained."""
    worst = 0.0
    for item, candidate in zip(evidence, candidates, strict=True):
        if candidate.shape != item.own.shape:
            return None
        measured = item.measured
        good = torch.isfinite(measured.abs())
        error = (_at(item, candidate) - measured).abs()[good]
        top = _largest(measured)
        if bool((error > torch.clamp(BARS * item.bars[good], min=EXPLAINED * top)).any()):
            return None
        if error.numel() and top > 0.0:
            worst = max(worst, float(error.max()) / top)
    return worst


def _at(item: Evidence, gradient: torch.Tensor) -> torch.Tensor:
    wide = torch.complex128 if gradient.is_complex() else torch.float64
    flat = gradient.detach().reshape(-1).to(wide)
    return flat[item.elements.to(flat.device)].cpu()


def _largest(tensor: torch.Tensor) -> float:
    finite = tensor.detach().abs()
    finite = finite[torch.isfinite(finite)]
    return float(finite.max()) if finite.numel() else 0.0


def _vanishes(item: Evidence) -> bool:
    """Whether the measured derivative is zero everywhere, while backward returned something."""
    good = torch.isfinite(item.measured.abs())
    size = item.measured[good].abs()
    negligible = EXPLAINED * _largest(item.own)
    return bool((size <= torch.clamp(BARS * item.bars[good], max=negligible)).all())


def _to(misfit: float) -> str:
    return f" to {misfit:.0e}" if misfit > 0.0 else " exactly"
