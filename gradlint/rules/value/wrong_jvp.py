"""Wrong forward-mode derivative (jvp).

What it finds
-------------
A `jvp` that is not the derivative of forward. Each input in turn gets a tangent u, and the adjoint
identity ⟨v, J·u⟩ = ⟨Jᵀv, u⟩ must hold between jvp and backward. Where it does not, or where
backward itself is wrong, the slope of forward along u is measured and decides which of the two is
wrong. Also found: a jvp that raises, fails for an input without a tangent, or returns the wrong
number, shape or kind of tangents. The rule runs on Python Functions that define jvp themselves.

Cost: one forward for each input; measurements only where something disagrees.

Why it matters
--------------
`torch.func.jvp`, `jacfwd`, `hessian` and forward-over-reverse products use jvp in place of
backward. Training never calls it, so nobody notices until the Hessian is wrong.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()

    @staticmethod
    def jvp(ctx, x_tangent):
        (x,) = ctx.saved_tensors
        return -x_tangent * x.cos()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()

    @staticmethod
    def jvp(ctx, x_tangent):
        (x,) = ctx.saved_tensors
        return x_tangent * x.cos()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:16:5  GL403  wrong jvp for `x`
  16 |     def jvp(ctx, x_tangent):
  cause           sign: the tangent is the negative of the derivative; backward agrees with forward
  where           index [2]
  measured        worst elements
                  index   returned   measured    error
                  [2]    +1.190774  -1.190774  2.4e+00
                  [0]    -0.428936  +0.428936  8.6e-01
  jvp slope       0.307796
  backward slope  -0.307796
  help            jvp returns, for each output, its derivative along the tangents of the inputs
```

References
----------
- Forward mode of custom functions: https://docs.pytorch.org/docs/stable/notes/extending.html
- The adjoint (dot-product) test: Claerbout, Earth Soundings Analysis (1992), chapter 5
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from gradlint.experiments.mismatch import plain_number
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_no_tangents
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.forward_mode import (
    central_differences,
    functions_with_jvp,
    judge_along_line,
    push_forward,
    raised_jvp_finding,
    tangent_cause,
    worst_tangent,
)
from gradlint.model.report import CheckVerdict, Finding
from gradlint.model.rule import Outcome
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.directions import direction
from gradlint.numerics.products import norm, real_dot, widened
from gradlint.numerics.verdict import DIFFERS, TOLERATED, UNSURE
from gradlint.rules.catalogue import rule_of
from gradlint.rules.value import wrong_gradient
from gradlint.targets import source
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

#: Inputs that are given a tangent; of more, the first ones.
MOST_INPUTS = 8


@dataclass
class _Pushed:
    """One input's tangent pushed forward: is ⟨v, J·u⟩ equal to ⟨Jᵀv, u⟩?"""

    position: int
    u: torch.Tensor
    tangents: list[torch.Tensor | None]
    jvp: float
    vjp: float
    scale: float


def probe(subject: Subject) -> Outcome:
    """Push a tangent through each input, and compare with backward."""
    reason = why_no_tangents(subject)
    if reason:
        return skipped(reason)
    functions = functions_with_jvp(subject)
    if not functions:
        return skipped("no Python Function with a jvp of its own")
    return _judge(subject, functions)


def _judge(subject: Subject, functions: list[type]) -> Outcome:
    names = [item.name for item in subject.run.outputs if item.differentiable]
    dtypes = [item.value.dtype for item in subject.problem.inputs]
    dtypes += [item.value.dtype for item in subject.run.outputs if item.differentiable]
    bits = min(significand_bits(dtype) for dtype in dtypes)
    tolerated = TOLERATED[max(known for known in TOLERATED if known <= bits)]
    known = subject.wrong_inputs
    declared = subject.op.intent.surrogate or {}
    findings: list[Finding] = []
    notes: list[str] = []
    judged = 0
    for position, item in enumerate(subject.problem.inputs[:MOST_INPUTS]):
        if not item.value.numel() or item.name in declared:
            continue
        try:
            found = _push_alone(subject, position, names)
        except OpRaised as error:
            finding = raised_jvp_finding(subject, RULE, functions, position, names, error)
            if finding is None:
                return skipped("forward mode is refused")
            return Outcome("fail", [finding])
        judged += 1
        findings += _wrong_dtype(subject, functions[0], found, names)
        lost = _not_finite(subject, functions[0], found, names)
        if lost is not None:
            findings.append(lost)
            continue
        agrees = abs(found.jvp - found.vjp) <= tolerated * found.scale
        if not agrees or position in known:
            finding, note = _measured(subject, functions[0], found, names, alike=agrees)
            findings += [finding] if finding else []
            notes += [note] if note else []
    if findings:
        return Outcome("fail", findings, note="; ".join(notes))
    verdict: CheckVerdict = "inconclusive" if notes else "pass" if judged else "skipped"
    return Outcome(verdict, [], tolerated, "; ".join(notes))


def _wrong_dtype(
    subject: Subject, function: type, found: _Pushed, names: list[str]
) -> list[Finding]:
    outputs = {item.name: item.value.dtype for item in subject.run.outputs}
    for name, tangent in zip(names, found.tangents, strict=True):
        if tangent is not None and tangent.dtype != outputs[name]:
            own, wanted = (str(d).removeprefix("torch.") for d in (tangent.dtype, outputs[name]))
            item = subject.problem.inputs[found.position]
            finding = subject.finding(
                RULE,
                f"jvp returns a {own} tangent for `{name}`, which is {wanted}",
                severity="warning",
                cause="wrong-tangent-dtype",
                input=item.name,
                output=name,
                place=source.method(function, "jvp"),
                help=f"return it in the output's dtype: .to({wanted})",
            )
            return [finding]
    return []


def _not_finite(
    subject: Subject, function: type, found: _Pushed, names: list[str]
) -> Finding | None:
    """A finding where jvp gives NaN or infinity, and forward has a finite slope there."""
    outputs = {item.name: item.value for item in subject.run.outputs}
    bad = [
        (name, tangent)
        for name, tangent in zip(names, found.tangents, strict=True)
        if tangent is not None and not bool((tangent.isfinite() | ~outputs[name].isfinite()).all())
    ]
    true = central_differences(subject, found.position, found.u, names) if bad else None
    if true is None:
        return None
    item = subject.problem.inputs[found.position]
    for name, tangent in bad:
        slopes = true[names.index(name)]
        lost = ~tangent.isfinite() & outputs[name].isfinite() & slopes.isfinite()
        if tangent.shape != slopes.shape or not bool(lost.any()):
            continue
        index = lost.nonzero()[0].tolist()
        place = tuple(index)
        shown = f"{int(lost.sum())} of {lost.numel()} elements are NaN or infinite"
        return subject.finding(
            RULE,
            f"jvp for `{item.name}` gives {plain_number(tangent[place])} where forward has a "
            "finite slope",
            cause="not-finite",
            cause_text=f"not-finite: {shown}",
            input=item.name,
            output=name if len(names) > 1 else None,
            index=index,
            place=source.method(function, "jvp"),
            evidence={"measured_slope": float(slopes[place].real)},
            help="look for a division by zero, 0 · inf, or a root or logarithm outside of its "
            "domain in jvp",
        )
    return None


def _push_alone(subject: Subject, position: int, names: list[str]) -> _Pushed:
    problem = subject.problem
    value = problem.inputs[position].value
    generator = torch.Generator().manual_seed(subject.seed + position)
    drawn = direction("random", value, torch.zeros_like(value), generator)
    u = widened(drawn.to(value.dtype))
    tangents: list[torch.Tensor | None] = [None] * len(problem.inputs)
    tangents[position] = u
    pushed = push_forward(problem, problem.values(), tangents, names)
    vs = [subject.run.cotangents[name] for name in names]
    gradient = (subject.run.gradients or [])[position]
    jvp = vjp = scale = 0.0
    for v, tangent in zip(vs, pushed, strict=True):
        if tangent is not None and tangent.shape == v.shape:
            jvp += real_dot(v, tangent)
            scale += norm(widened(v).abs() * widened(tangent).abs())
    if gradient is not None:
        vjp = real_dot(gradient, u)
        scale += norm(widened(gradient).abs() * u.abs())
    return _Pushed(position, u, pushed, jvp, vjp, scale)


def _measured(
    subject: Subject, function: type, found: _Pushed, names: list[str], *, alike: bool
) -> tuple[Finding | None, str]:
    """A finding where the slope of forward along u is not that of jvp, or a note.

    Args:
        alike: whether backward has the same slope as jvp.
    """
    name = subject.problem.inputs[found.position].name
    decision = judge_along_line(subject, found.position, found.u, names, subject.seed)
    verdict = UNSURE if decision is None else decision.verdicts[0]
    if verdict == UNSURE:
        return None, f"{name}: jvp and backward disagree, and which is right could not be measured"
    if verdict != DIFFERS:
        return None, ""
    finding = _wrong(subject, function, found, names)
    return _as_loud_as_backward(subject, finding) if alike else finding, ""


def _as_loud_as_backward(subject: Subject, finding: Finding) -> Finding:
    """``finding`` with what speaks for the gradient of its input, where backward has the same slope
    and was found wrong: a surrogate is one in both modes."""
    outcome = wrong_gradient.probe(subject)
    for other in outcome.findings:
        if other.input == finding.input:
            return replace(finding, severity=other.severity, grounds=other.grounds)
    return finding


def _wrong(subject: Subject, function: type, found: _Pushed, names: list[str]) -> Finding:
    item = subject.problem.inputs[found.position]
    true = central_differences(subject, found.position, found.u, names)
    numbers: dict[str, Any] = {"jvp_slope": found.jvp, "backward_slope": found.vjp}
    slug, text, output, index = None, "", None, None
    if true is not None:
        slug, text = tangent_cause(found.tangents, true)
        output, index, rows = worst_tangent(found.tangents, true, names)
        numbers["elements"] = rows
    if found.position not in subject.wrong_inputs:
        also = "backward agrees with forward"
        text = f"{text}; {also}" if text else also
    return subject.finding(
        RULE,
        f"wrong jvp for `{item.name}`",
        cause=slug,
        cause_text=text,
        input=item.name,
        output=output if len(names) > 1 else None,
        index=index,
        place=source.method(function, "jvp"),
        evidence=numbers,
        help="jvp returns, for each output, its derivative along the tangents of the inputs, "
        "one term for each input; what it needs is kept with ctx.save_for_forward",
    )
