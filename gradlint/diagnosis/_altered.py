"""Faults in how backward uses grad_output: the returned gradient is right for another cotangent.

J·u is measured along a few directions u, which yields the slope ⟨v', J·u⟩ for every cotangent v'.
If that equals ⟨g, u⟩ for all of them, backward returned the gradient for v' instead of v.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.evidence import BARS, EXPLAINED, Evidence, Fit
from gradlint.numerics.directional_response import Reaction
from gradlint.numerics.products import norm, widened

Alter = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]

#: If more than this share of a gradient is not zero, although it comes from one slice of
#: grad_output, the right gradient is a sum over slices (an elementwise one would be zero elsewhere;
#: heuristic).
MOSTLY = 0.5

#: Relative accuracy to which two directions must yield the same elementwise derivative (heuristic).
SAME = 1e-4


@dataclass(frozen=True)
class _Altered:
    slug: str
    text: str
    help: str
    alter: Alter


def altered_causes(
    evidence: Sequence[Evidence], reactions: Sequence[Reaction], name: str, outputs: Sequence[str]
) -> list[Cause]:
    """Causes by which the returned gradients are right ones, for other cotangents.

    Args:
        reactions: along independent directions of the input.
        outputs: what flows back into each output, in words: "the grad_output of `y`".
    """
    if not evidence or not reactions:
        return []
    found = _wrongly_reduced(evidence, reactions, name)
    for each in _alterations(evidence[0], name, outputs):
        fit = _fit(evidence, reactions, each.alter)
        if fit is not None:
            found.append(Cause(each.slug, f"{each.slug}: {each.text}{fit}", each.help, fit.misfit))
    return found


def _alterations(first: Evidence, name: str, outputs: Sequence[str]) -> Iterator[_Altered]:
    if len(first.cotangents) > 1:
        yield from _of_several(name, outputs)
    else:
        yield from _of_one(first, first.cotangents[0], name)


def _of_several(name: str, outputs: Sequence[str]) -> Iterator[_Altered]:
    for place, output in enumerate(outputs):
        yield _Altered(
            "ignores-one-grad-output",
            f"the gradient of `{name}` ignores {output}: with that set to zero it agrees",
            f"add the contribution of {output} to the gradient of `{name}`",
            partial(_without, place),
        )
    if len(outputs) > 2:
        for place, output in enumerate(outputs):
            yield _Altered(
                "ignores-one-grad-output",
                f"the gradient of `{name}` uses only {output}: with the others set to zero it "
                "agrees",
                f"add the contributions of the others to the gradient of `{name}`",
                partial(_only, place),
            )


def _of_one(first: Evidence, cotangent: torch.Tensor, name: str) -> Iterator[_Altered]:
    shape = tuple(cotangent.shape)
    if cotangent.is_complex():
        yield _Altered(
            "conjugate",
            f"grad_output is used as if it were its own conjugate: for the conjugate, the gradient "
            f"of `{name}` agrees",
            f"exchange grad_output and what it is multiplied with in the gradient of `{name}`: "
            "conjugate the derivative, not grad_output",
            _conjugate,
        )
    for axis, size in enumerate(shape):
        if size < 2:
            continue
        if float((first.own != 0).double().mean()) > MOSTLY:
            for number, words in ((0, "first"), (size - 1, "last")):
                yield _Altered(
                    "missing-reduction",
                    f"the gradient of `{name}` is not summed over axis {axis} of the output: for "
                    f"the {words} slice alone it agrees",
                    f"sum over axis {axis} of grad_output: return (…).sum({axis}) for `{name}`",
                    partial(_slice_alone, axis, number),
                )
        yield _Altered(
            "flipped-axis",
            f"grad_output is read from last to first along axis {axis}: for a flipped one, the "
            f"gradient of `{name}` agrees",
            f"do not flip grad_output along axis {axis}",
            partial(_flip, axis),
        )
        for shift in (1, -1) if size > 2 else ():
            yield _Altered(
                "permuted-axis",
                f"grad_output is shifted cyclically by {shift} along axis {axis}: for a shifted "
                f"one, the gradient of `{name}` agrees",
                f"do not shift grad_output along axis {axis}",
                partial(_roll, shift, axis),
            )
    for a, b in itertools.combinations(range(len(shape)), 2):
        if shape[a] == shape[b] > 1:
            yield _Altered(
                "transposed",
                f"grad_output is read with its axes {a} and {b} exchanged: for a transposed one, "
                f"the gradient of `{name}` agrees",
                f"use grad_output as it is, not transposed, for `{name}`",
                partial(_exchange, a, b),
            )


def _fit(evidence: Sequence[Evidence], reactions: Sequence[Reaction], alter: Alter) -> Fit | None:
    worst, count = 0.0, 0
    for item in evidence:
        vs = alter(item.cotangents)
        if all(torch.equal(v, w) for v, w in zip(vs, item.cotangents, strict=True)):
            return None
        for reaction in reactions:
            found = reaction.unexplained(vs, item.own)
            if found is None:
                continue
            scale = max(norm(widened(item.own).abs() * reaction.u.abs()), abs(found.slope))
            if not abs(found.residual) <= max(found.bar, EXPLAINED * scale):
                return None
            if found.bar > 0.1 * scale:
                continue  # the measurement is too coarse
            worst, count = max(worst, abs(found.residual) / scale if scale else 0.0), count + 1
    return Fit(worst, count) if count > 1 else None


def _wrongly_reduced(
    evidence: Sequence[Evidence], reactions: Sequence[Reaction], name: str
) -> list[Cause]:
    """Whether the gradient of a broadcast input was summed over the wrong axes.

    If the function acts element by element, with derivative d, the gradient is the sum of v∘d over
    the axes along which the input was broadcast. Sums over other axes of the same sizes are tried.
    """
    first = evidence[0]
    if len(first.cotangents) != 1 or len(reactions) < 2 or first.own.dim() == 0:
        return []
    shape, own_shape = tuple(first.cotangents[0].shape), tuple(first.own.shape)
    if len(own_shape) >= len(shape):
        return []
    found = []
    for axes in itertools.combinations(range(len(shape)), len(own_shape)):
        if tuple(shape[axis] for axis in axes) != own_shape:
            continue
        spread = tuple(
            own_shape[axes.index(axis)] if axis in axes else 1 for axis in range(len(shape))
        )
        local = _local_derivative(reactions, spread)
        if local is None:
            continue
        derivative, bar = local
        for other in itertools.permutations(range(len(shape)), len(own_shape)):
            if other == axes or tuple(shape[axis] for axis in other) != own_shape:
                continue
            fit = _reduced_fit(evidence, derivative, bar, other)
            if fit is None:
                continue
            summed = [axis for axis in range(len(shape)) if axis not in other]
            right = [axis for axis in range(len(shape)) if axis not in axes]
            found.append(
                Cause(
                    "wrong-axis",
                    f"wrong-axis: the gradient of `{name}` is summed over {_axes(summed)} of the "
                    f"output instead of {_axes(right)}: with that sum it agrees{fit}",
                    f"sum over {_axes(right)} for `{name}`",
                    fit.misfit,
                )
            )
        break
    return found


def _local_derivative(
    reactions: Sequence[Reaction], spread: tuple[int, ...]
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """d with J·u = d∘u for every u, broadcast as ``spread``, and its error bar; None if J is not
    diagonal in that sense."""
    seen = []
    for reaction in reactions[:2]:
        u = reaction.u.reshape(spread)
        if bool((u == 0).any()):
            return None
        change, bar = reaction.derivative(0)
        seen.append((change / u, bar / u.abs()))
    (first, bar), (second, other) = seen
    top = float(first.abs().max())
    if not bool(((first - second).abs() <= BARS * (bar + other) + SAME * top).all()):
        return None
    return first, bar + EXPLAINED * top


def _reduced_fit(
    evidence: Sequence[Evidence],
    derivative: torch.Tensor,
    bar: torch.Tensor,
    kept: tuple[int, ...],
) -> Fit | None:
    rest = [axis for axis in range(derivative.dim()) if axis not in kept]
    order = (*kept, *rest)
    length = len(kept)
    worst, count = 0.0, 0
    for item in evidence:
        v = widened(item.cotangents[0])
        share = (v * derivative.conj()).permute(order).flatten(length).sum(-1)
        allowed = (v.abs() * bar).permute(order).flatten(length).sum(-1)
        error = (widened(item.own) - share).abs()
        top = float(share.abs().max())
        if not bool((error <= BARS * allowed + EXPLAINED * top).all()):
            return None
        if float(allowed.max()) > 0.1 * top:
            return None
        worst, count = max(worst, float(error.max()) / top if top else 0.0), count + error.numel()
    return Fit(worst, count) if count > 1 else None


def _without(place: int, vs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.zeros_like(v) if k == place else v for k, v in enumerate(vs)]


def _only(place: int, vs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [v if k == place else torch.zeros_like(v) for k, v in enumerate(vs)]


def _slice_alone(axis: int, number: int, vs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    kept = torch.zeros_like(vs[0])
    kept.select(axis, number).copy_(vs[0].select(axis, number))
    return [kept]


def _flip(axis: int, vs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [vs[0].flip(axis)]


def _roll(shift: int, axis: int, vs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [vs[0].roll(shift, axis)]


def _conjugate(vs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [vs[0].conj().resolve_conj()]


def _exchange(a: int, b: int, vs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [vs[0].transpose(a, b)]


def _axes(axes: Sequence[int]) -> str:
    return f"axis {axes[0]}" if len(axes) == 1 else f"axes {list(axes)}"
