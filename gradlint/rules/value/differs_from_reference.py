"""Output differs from the reference.

What it finds
-------------
An op whose outputs are not those of the reference declared for it (``reference:`` in a spec).

Why it matters
--------------
The gradient may be the right derivative of the wrong function. Finite differences can't see that,
because they rely on forward; the reference can.

Bad
---
A mean that divides by the wrong axis, with a reference that states the intention:

```python
import torch


class Op(torch.autograd.Function):
    reference = "x.mean(-1)"

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum(-1) / x.shape[0]

    @staticmethod
    def backward(ctx, grad_output):
        return (grad_output[:, None] / ctx.shape[0]).expand(ctx.shape)

    @staticmethod
    def sample_inputs():
        return (torch.randn(3, 5, dtype=torch.float64),)
```

Good
----
The same with the axis that the reference names:

```python
import torch


class Op(torch.autograd.Function):
    reference = "x.mean(-1)"

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum(-1) / x.shape[-1]

    @staticmethod
    def backward(ctx, grad_output):
        return (grad_output[:, None] / ctx.shape[-1]).expand(ctx.shape)

    @staticmethod
    def sample_inputs():
        return (torch.randn(3, 5, dtype=torch.float64),)
```

How it looks
------------
``op.yaml:3:12  GL404  `output` differs from the reference``, with the worst elements: index, what
forward returned, what the reference gives.

References
----------
flash-attention and FlagGems test their kernels against a plain eager implementation in the same
way.
"""

from __future__ import annotations

from typing import Any

import torch

from gradlint.diagnosis.evidence import unravel
from gradlint.experiments.mismatch import plain_number
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_no_forward
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.numerics.products import widened
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

#: Relative to the largest element of the reference, by dtype: forward may order its operations
#: differently (heuristic, about √eps).
ALLOWED = {"float64": 1e-8, "float32": 1e-3, "float16": 1e-2, "bfloat16": 5e-2}

#: An output may differ from the reference in float64 by this many times the error of the reference
#: in the dtype itself, since it may round in another order (heuristic).
OWN_ERRORS = 2.0


def probe(subject: Subject) -> Outcome:
    """Call the reference on the sample and compare every output."""
    reference = subject.op.reference
    if reference is None:
        return skipped("no reference is declared")
    reason = why_no_forward(subject)
    if reason:
        return skipped(reason)
    outputs = subject.problem.forward()
    try:
        expected = subject.problem.outputs_of(reference)
    except OpRaised as raised:
        missing = [name for name, value in subject.arguments() if value is None]
        if not missing:
            raise
        names = ", ".join(f"`{name}`" for name in missing)
        kind = type(raised.error).__name__
        return skipped(f"the reference raises {kind} without {names}")
    if len(expected) != len(outputs):
        finding = subject.finding(
            RULE,
            f"forward returns {len(outputs)} tensors, the reference {len(expected)}",
            help="make the reference return the same outputs in the same order",
        )
        return Outcome("fail", [finding])
    findings = []
    for number, (ours, theirs) in enumerate(zip(outputs, expected, strict=True)):
        value, truth = ours.value.detach(), theirs.value.detach()
        if value.shape != truth.shape:
            message = (
                f"`{ours.name}` has shape {tuple(value.shape)}, the reference {tuple(truth.shape)}"
            )
            findings.append(subject.finding(RULE, message, output=ours.name))
            continue
        numbers = _compare(value, truth)
        if numbers is not None and not _as_good(subject, number, value, truth):
            findings.append(
                subject.finding(
                    RULE,
                    f"`{ours.name}` differs from the reference",
                    output=ours.name,
                    index=numbers["elements"][0]["index"],
                    evidence=numbers,
                    help="the op or its reference is wrong: compare the two at the index shown",
                )
            )
    return Outcome("fail" if findings else "pass", findings)


def _as_good(subject: Subject, number: int, value: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether output ``number`` is as close to the reference in float64 as the reference in the
    dtype of the sample is, which rounds intermediate results that the op may not round."""
    wide = subject.problem.in_float64()
    if wide is None or subject.op.reference is None or not value.is_floating_point():
        return False
    try:
        exact = [item.value.detach() for item in wide.outputs_of(subject.op.reference)]
    except OpRaised:
        return False
    if len(exact) <= number or exact[number].shape != value.shape:
        return False
    own = (widened(truth) - widened(exact[number])).abs()
    if not bool(own.isfinite().all()):
        return False
    return _agrees(value, exact[number], OWN_ERRORS * float(own.max()))


def _compare(value: torch.Tensor, truth: torch.Tensor) -> dict[str, Any] | None:
    if _name(value) not in ALLOWED and not value.is_complex():
        return None if torch.equal(value, truth.to(value.dtype)) else _worst(value, truth)
    return None if _agrees(value, truth, 0.0) else _worst(value, truth)


def _agrees(value: torch.Tensor, truth: torch.Tensor, more: float) -> bool:
    """Whether ``value`` is ``truth`` within what its dtype allows, and ``more``."""
    wide, wide_truth = widened(value), widened(truth)
    error = (wide - wide_truth).abs()
    both = torch.isnan(wide.abs()) & torch.isnan(wide_truth.abs()) | (wide == wide_truth)
    error = torch.where(both, torch.zeros_like(error), error)
    finite = wide_truth.abs()[torch.isfinite(wide_truth.abs())]
    top = float(finite.max()) if finite.numel() else 1.0
    allowed = ALLOWED.get(_name(value), 1e-3) * max(top, 1e-300) + more
    return bool((error <= allowed).all())


def _name(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def _worst(value: torch.Tensor, truth: torch.Tensor) -> dict[str, Any]:
    wide, wide_truth = widened(value).reshape(-1), widened(truth).reshape(-1)
    error = torch.nan_to_num((wide - wide_truth).abs(), nan=float("inf"))
    order = torch.argsort(error, descending=True)[:3].tolist()
    shape = tuple(value.shape)
    return {
        "differing": int((error > 0).sum()),
        "numel": value.numel(),
        "elements": [
            {
                "index": list(unravel(k, shape)),
                "returned": plain_number(wide[k]),
                "measured": plain_number(wide_truth[k]),
                "error": float(error[k]),
            }
            for k in order
        ],
    }
