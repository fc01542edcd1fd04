"""Wrong forward-mode derivative (jvp).

What it finds
-------------
A `jvp` that is not the derivative of forward. Each input alone gets a tangent u, and the adjoint
identity ⟨v, J·u⟩ = ⟨Jᵀv, u⟩ must hold between jvp and backward. Where it does not, or where
backward itself is wrong, the slope of forward along u is measured and tells which of the two is at
fault. Also found: a jvp that raises, takes an input without tangent amiss, or returns the wrong
number, shape or kind of tangents. Looked at is what Python Functions define themselves.

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
  cause      sign: the tangent is the negative of the derivative
             index      returned     measured       error
             [1]       +0.070737    -0.070737     1.4e-01
  help       jvp returns, for each output, its derivative along the tangents of the inputs
```

References
----------
- Forward mode of custom functions: https://docs.pytorch.org/docs/stable/notes/extending.html
- The adjoint (dot-product) test: Claerbout, Earth Soundings Analysis (1992), chapter 5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gradlint.experiments.gradient_agreement import wrong_already
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.forward_mode import (
    along_line,
    differences,
    functions_with_jvp,
    push,
    raised,
    tangent_cause,
    worst_tangent,
)
from gradlint.experiments.value.preconditions import obstacle
from gradlint.model.report import Finding
from gradlint.model.rule import CheckVerdict, Outcome
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.directions import direction
from gradlint.numerics.products import norm, real_dot, widened
from gradlint.numerics.verdict import DIFFERS, TOLERATED, UNSURE
from gradlint.rules.catalogue import rule_of
from gradlint.targets import source
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

#: Inputs that are given a tangent; of more, the first ones.
MOST_INPUTS = 8

#: Significand bits below which steps are too coarse for a verdict: float16 and bfloat16.
FEWEST_BITS = 24


@dataclass
class _Pushed:
    """One input's tangent pushed through: is ⟨v, J·u⟩ what ⟨Jᵀv, u⟩ is?"""

    position: int
    u: torch.Tensor
    tangents: list[torch.Tensor | None]
    jvp: float
    vjp: float
    scale: float


def probe(subject: Subject) -> Outcome:
    """Push a tangent through each input, and compare with backward."""
    if subject.run.error is not None:
        return Outcome("skipped", note=f"{subject.run.error.phase} raised")
    reason = _unfit(subject) or obstacle(subject)
    if reason:
        return Outcome("skipped", note=reason)
    functions = functions_with_jvp(subject)
    if not functions:
        return Outcome("skipped", note="no Python Function with a jvp of its own")
    return _judge(subject, functions)


def _unfit(subject: Subject) -> str:
    tensors = [item.value for item in subject.problem.inputs]
    chosen = [item.value for item in subject.run.outputs if item.differentiable]
    if not tensors or not chosen:
        return "no input requires grad" if not tensors else "no output is differentiable"
    if subject.problem.has_sparse_inputs or any(item.is_nested for item in chosen):
        return "tangents of sparse and nested tensors are not looked at"
    if min(significand_bits(item.dtype) for item in (*tensors, *chosen)) < FEWEST_BITS:
        return "jvp is judged in float32 and up"
    return ""


def _judge(subject: Subject, functions: list[type]) -> Outcome:
    names = [item.name for item in subject.run.outputs if item.differentiable]
    dtypes = [item.value.dtype for item in subject.problem.inputs]
    dtypes += [item.value.dtype for item in subject.run.outputs if item.differentiable]
    bits = min(significand_bits(dtype) for dtype in dtypes)
    tolerated = TOLERATED[max(known for known in TOLERATED if known <= bits)]
    known = wrong_already(subject)
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
            finding = raised(subject, RULE, functions, position, names, error)
            if finding is None:
                return Outcome("skipped", note="forward mode is openly refused")
            return Outcome("fail", [finding])
        judged += 1
        findings += _wrong_dtype(subject, functions[0], found, names)
        agrees = abs(found.jvp - found.vjp) <= tolerated * found.scale
        if not agrees or position in known:
            finding, note = _measured(subject, functions[0], found, names)
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


def _push_alone(subject: Subject, position: int, names: list[str]) -> _Pushed:
    problem = subject.problem
    value = problem.inputs[position].value
    generator = torch.Generator().manual_seed(subject.seed + position)
    drawn = direction("random", value, torch.zeros_like(value), generator)
    u = widened(drawn.to(value.dtype))
    tangents: list[torch.Tensor | None] = [None] * len(problem.inputs)
    tangents[position] = u
    pushed = push(problem, problem.values(), tangents, names)
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
    subject: Subject, function: type, found: _Pushed, names: list[str]
) -> tuple[Finding | None, str]:
    """A finding where what forward does along u is not what jvp says, or a note."""
    name = subject.problem.inputs[found.position].name
    decision = along_line(subject, found.position, found.u, names, subject.seed)
    verdict = decision.verdicts[0]
    if verdict == UNSURE:
        return None, f"{name}: jvp and backward disagree, and which is right could not be measured"
    if verdict != DIFFERS:
        return None, ""
    return _wrong(subject, function, found, names), ""


def _wrong(subject: Subject, function: type, found: _Pushed, names: list[str]) -> Finding:
    item = subject.problem.inputs[found.position]
    true = differences(subject, found.position, found.u, names)
    numbers: dict[str, Any] = {"jvp_slope": found.jvp, "backward_slope": found.vjp}
    slug, text, output, index = None, "", None, None
    if true is not None:
        slug, text = tangent_cause(found.tangents, true)
        output, index, rows = worst_tangent(found.tangents, true, names)
        numbers["elements"] = rows
    if found.position not in wrong_already(subject):
        also = "backward agrees with what forward does"
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
        "one term for each input; what it needs is kept by ctx.save_for_forward",
    )
