"""How backward responds to its cotangents, and the causes if it is not linear in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.evidence import Evidence, fit_of
from gradlint.diagnosis.precision import low_precision

#: How backward responds to its cotangents.
LINEAR, CONSTANT, NOT_LINEAR = "linear", "constant", "not linear"


@dataclass(frozen=True)
class Response:
    """How backward was seen to respond.

    Args:
        kind: :data:`LINEAR`, :data:`CONSTANT` or :data:`NOT_LINEAR`.
        offset: what it returns if all cotangents are zero, unless that is zero too.
        stale: what it reuses from an earlier call ("grad_output", "inputs"); "" if nothing.
    """

    kind: str = LINEAR
    offset: torch.Tensor | None = None
    stale: str = ""


def response_cause(evidence: Sequence[Evidence], response: Response, name: str) -> Cause | None:
    """The cause for a backward that is not linear in its cotangents; None if it is linear. Rounding
    in a coarse dtype is not linear either."""
    if response.stale:
        return _stale(name, response.stale)
    offset = response.offset
    if offset is not None:
        constant = f"additive-constant: the gradient of `{name}` has a term that remains even if"
        fit = fit_of(evidence, [item.own - offset for item in evidence])
        if fit is not None:
            return Cause(
                "additive-constant",
                f"{constant} grad_output is zero; without that term it agrees{fit}",
                f"multiply every term of the gradient of `{name}` by grad_output; a regularizer "
                "belongs in the loss, not in backward",
                fit.misfit,
            )
    if response.kind == CONSTANT:
        return ignores(evidence, name)
    rounded = low_precision(evidence, name)
    if rounded is not None:
        return rounded
    return _not_linear(name) if response.kind == NOT_LINEAR else None


def ignores(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """The same gradient under different cotangents."""
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


def added(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """The same error under different cotangents, where all elements were measured."""
    complete = [item for item in evidence if item.complete and bool(item.good.all())]
    if len(complete) < 2:
        return None
    first = complete[0]
    constant = first.own - first.measured.reshape(first.own.shape).to(
        dtype=first.own.dtype, device=first.own.device
    )
    fit = fit_of(complete[1:], [item.own - constant for item in complete[1:]])
    if fit is None:
        return None
    return Cause(
        "additive-constant",
        f"additive-constant: the gradient of `{name}` is off by the same amount whatever "
        f"grad_output is: without that constant it agrees{fit}",
        f"multiply every term of the gradient of `{name}` by grad_output",
        fit.misfit,
    )


def _stale(name: str, what: str) -> Cause:
    return Cause(
        "stale",
        f"stale: the gradient of `{name}` is that of the previous call: backward uses the {what} "
        "of an earlier call",
        "keep nothing between calls: save tensors with ctx.save_for_backward, not on the class, "
        "the module or in a global",
    )


def _not_linear(name: str) -> Cause:
    return Cause(
        "not-linear",
        f"not-linear: the gradient of `{name}` is not linear in grad_output, as a vector-Jacobian "
        "product must be: something clips, rectifies or rounds it, adds to it, or keeps state "
        "between calls",
        "multiply grad_output by the derivative and do nothing else to it: clip gradients in a "
        "hook or in the optimizer",
    )
