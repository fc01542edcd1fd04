"""How a backward responds to other cotangents, asked of the op itself."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.diagnosis._evidence import EXPLAINED, Evidence, largest
from gradlint.diagnosis._response import CONSTANT, NOT_LINEAR, Response
from gradlint.numerics._map import Map
from gradlint.numerics._products import unit_roundoff, widened
from gradlint.numerics._smooth import nudge
from gradlint.trace._problem import OpRaised

#: Units of the dtype's epsilon by which rounding may keep backward from being exactly linear
#: (heuristic: 30 roundings; float32 inside float64 stays below :data:`EXPLAINED`).
ROUNDINGS = 30.0


def response(function: Map, evidence: Sequence[Evidence]) -> Response:
    """How backward responds: linearly, as every vector-Jacobian product, where
    g(v − 3w) = g(v) − 3·g(w) to within rounding; constantly where g(v − 3w) is g(v) and g(w); else
    not linearly, perhaps because of a constant term or of something kept from an earlier call.
    (Three times: where v and w have a sign in common, v − 3w has the other.)"""
    if len(evidence) < 2:
        return Response()
    try:
        return _asked(function, evidence)
    except OpRaised:
        return Response()


def _asked(function: Map, evidence: Sequence[Evidence]) -> Response:
    index = evidence[0].index

    def pull(cotangents: Sequence[torch.Tensor]) -> torch.Tensor:
        found = function.gradients_at(function.values, cotangents)
        return widened(function.projected(index, found[index]))

    first, second = evidence[0].cotangents, evidence[1].cotangents
    g, h = widened(evidence[0].own), widened(evidence[1].own)
    if not g.numel():
        return Response()
    mixed = [v - 3 * w for v, w in zip(first, second, strict=True)]
    got = pull(mixed)
    lowest = min(
        (y.dtype for y in [evidence[0].own, *mixed]), key=lambda dtype: -unit_roundoff(dtype)
    )
    share = max(EXPLAINED, ROUNDINGS * unit_roundoff(lowest))
    true = max((largest(item.measured) for item in evidence), default=0.0)
    allowed = share * max(float((g.abs() + 3.0 * h.abs()).max()), true)

    def same(a: torch.Tensor, b: torch.Tensor) -> bool:
        return a.shape == b.shape and bool(((a - b).abs() <= allowed).all())

    if same(got, g - 3.0 * h):
        return Response()
    again = pull(mixed)
    if not same(again, got):
        # What comes back depends on the calls before: is it the answer to the one before?
        pull(first)
        settled = pull(first)
        late = pull(second)
        stale = same(late, settled) and not same(late, pull(second))
        return Response(NOT_LINEAR, stale="grad_output" if stale else "")
    if same(got, g) and same(h, g):
        return Response(CONSTANT)
    offset = pull([torch.zeros_like(v) for v in first])
    if bool((offset.abs() > allowed).any()) and same(got - offset, g - offset - 3.0 * (h - offset)):
        return Response(NOT_LINEAR, offset=offset)
    return Response(NOT_LINEAR)


def uses_earlier_inputs(function: Map, evidence: Sequence[Evidence], seed: int) -> bool:
    """Whether backward, called at another point and then here, answers for the other point."""
    beside = nudge(function, seed)
    if beside is None or not evidence:
        return False
    index, vs = evidence[0].index, evidence[0].cotangents
    try:
        beside.gradients_at(beside.values, vs)
        there = widened(beside.gradients_at(beside.values, vs)[index])
        first = widened(function.gradients_at(function.values, vs)[index])
        again = widened(function.gradients_at(function.values, vs)[index])
    except OpRaised:
        return False
    if there.shape != first.shape:
        return False
    allowed = EXPLAINED * float(there.abs().max()) if there.numel() else 0.0
    near = bool(((first - there).abs() <= allowed).all())
    return near and bool(((again - there).abs() > allowed).any())
