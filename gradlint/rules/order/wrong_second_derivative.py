"""Wrong second derivative.

What it finds
-------------
Differentiating backward itself (`create_graph=True`) gives something other than the derivative of
what backward computes; or second derivatives are not symmetric; or it raises without saying that
second derivatives are not supported. Where the first-order gradient is wrong, nothing is reported.

Why it matters
--------------
Gradient penalties, physics-informed networks, meta-learning and Hessian-vector products
differentiate twice. First-order checks can't see this fault: the gradient itself is right.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        root = torch.sqrt(x)
        ctx.save_for_backward(x)
        ctx.root = root.detach()
        return x * root

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (ctx.root + 0.5 * x / ctx.root)

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, 1.5, 2.5]),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sqrt(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 1.5 * torch.sqrt(x)

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, 1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:14:16  GL501  gradient right (to 3e-10); wrong second derivative with respect to `x`
  14 |         return grad_output * (ctx.root + 0.5 * x / ctx.root)
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ returned for `x`
  cause          saved-without-graph: backward uses `ctx.root`, which forward computes from `x`.
                 Autograd records nothing of what happens inside of a Function's forward …
  where          index [0]
  measured       3 of 3 elements differ; the gradient is off by 33 %
                 index   returned   measured    error
                 [0]    +1.215283  +1.822925  6.1e-01
                 [1]    +0.372027  +0.558041  1.9e-01
  gradgradcheck  slow: fails too
  help           compute `ctx.root` again in backward, from the saved inputs; or return it from
                 forward as a further output, and save that: only inputs and outputs keep …
```

References
----------
- Double backward with custom functions:
  https://docs.pytorch.org/tutorials/intermediate/custom_function_double_backward_tutorial.html
- Reports: pytorch/pytorch#1753, pytorch/pytorch#58509
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from gradlint.base.text import error_text
from gradlint.diagnosis.engine_errors import explain
from gradlint.experiments.mismatch import mismatch
from gradlint.experiments.order.saved_without_graph import SAVED, saved_without_graph
from gradlint.experiments.order.second_order import (
    FIRST_ORDER_ONLY,
    SecondOrderAttempt,
    asymmetry,
    differentiate_twice,
    first_order_words,
    is_lost,
    second_order_place,
    target_at_fault,
)
from gradlint.experiments.order.special_second_order import (
    NanSecondDerivative,
    nan_second_derivatives,
)
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.rounding_only import only_rounding
from gradlint.experiments.subject import Subject
from gradlint.model.report import CheckVerdict, Finding
from gradlint.model.rule import Outcome
from gradlint.numerics.decide import Decision
from gradlint.numerics.verdict import DIFFERS, UNSURE
from gradlint.rules.catalogue import rule_of
from gradlint.targets import source

RULE = rule_of(__name__)

HELP = (
    "backward must compute from ctx.saved_tensors (inputs or outputs) with differentiable "
    "operations; a saved intermediate, .detach(), .data or a value kept on ctx breaks the graph. "
    "@once_differentiable refuses second derivatives openly"
)


@dataclass
class _Judged:
    """What the verdicts on a second-order map come to, before first order is asked."""

    findings: list[Finding] = field(default_factory=list)
    resolutions: list[float] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def outcome(self, verdict: CheckVerdict) -> Outcome:
        resolution = max(self.resolutions, default=None)
        return Outcome(verdict, self.findings, resolution, "; ".join(self.notes))


def probe(subject: Subject) -> Outcome:
    """Compare double backward with finite differences of backward."""
    attempt = subject.once(differentiate_twice)
    if attempt.error is not None and not attempt.refused:
        return Outcome("fail", [_raised(subject)])
    if attempt.map is None or attempt.decision is None:
        return skipped(attempt.reason)
    if DIFFERS in subject.first_order.verdicts:
        # A backward that runs through the op itself inherits the fault of the first order; and the
        # derivative of a wrong gradient is not a second derivative of forward.
        places = range(len(attempt.decision.verdicts))
        faulty = any(_faulty(attempt, attempt.decision, place) for place in places)
        also = "" if faulty else "double backward is the derivative of backward, but "
        return skipped(f"{also}the first-order gradient is wrong: see GL401")
    judged = _judge(subject, attempt, attempt.decision, attempt.map.names)
    agrees = not judged.findings and DIFFERS not in attempt.decision.verdicts
    if agrees and not subject.op.intent.surrogate:
        judged.findings += _asymmetric(subject)
    if agrees and not judged.findings and attempt.map.chooses:
        judged.findings += [_nan_at(subject, item) for item in nan_second_derivatives(subject)]
    if judged.findings and only_rounding(subject).issuperset(attempt.map.targets):
        return skipped("the gradient is nothing but rounding error")
    if not judged.findings and judged.unsure:
        names = ", ".join(judged.unsure)
        judged.notes.append(f"could not tell for {names}: too noisy or not smooth there")
        return judged.outcome("inconclusive")
    return judged.outcome("fail" if judged.findings else "pass")


def _judge(
    subject: Subject, attempt: SecondOrderAttempt, decision: Decision, names: list[str]
) -> _Judged:
    """Findings, resolutions and notes, value by value of the second-order map."""
    judged = _Judged()
    for place, item in enumerate(decision.judgement.inputs):
        verdict, name = decision.verdicts[place], names[item.index]
        if item.index in decision.notes:
            judged.notes.append(f"{name}: {decision.notes[item.index]}")
        faulty = _faulty(attempt, decision, place)
        if verdict == DIFFERS:
            if faulty:
                judged.findings.append(_wrong(subject, place))
        elif faulty:
            judged.findings.append(_not_finite(subject, item.index))
        elif verdict == UNSURE:
            judged.unsure.append(name)
        else:
            judged.resolutions.append(decision.resolution_of(item.index))
    return judged


def _faulty(attempt: SecondOrderAttempt, decision: Decision, place: int) -> bool:
    """Whether there is a finding on a value: its second derivative differs, or is not finite where
    it could not be measured."""
    item = decision.judgement.inputs[place]
    if decision.verdicts[place] == DIFFERS:
        return not is_lost(attempt, item.index)  # else GL502 reports it
    unmeasured = not item.pairs and item.resolution == float("inf")
    return unmeasured and _broken(attempt, item.index) > 0


def _broken(attempt: SecondOrderAttempt, position: int) -> int:
    """How many elements of the claimed second derivative of a value are NaN or infinite."""
    assert attempt.decision is not None
    gradients = attempt.decision.judgement.gradients
    return max(int((~torch.isfinite(found[position])).sum()) for found in gradients)


def _not_finite(subject: Subject, position: int) -> Finding:
    attempt = subject.once(differentiate_twice)
    assert attempt.map is not None
    name = attempt.map.names[position]
    value = attempt.map.map.values[position]
    return subject.finding(
        RULE,
        f"second derivative with respect to `{name}` is not finite",
        severity="warning",
        input=name,
        place=second_order_place(subject, attempt.map.targets[0]),
        evidence={"not_finite": _broken(attempt, position), "numel": value.numel()},
        help="the operations of backward have no finite derivative here (√ or a power at 0, a "
        "division by 0, where() over both): guard them, or mark backward with "
        "@once_differentiable",
    )


def _nan_at(subject: Subject, seen: NanSecondDerivative) -> Finding:
    name = subject.problem.inputs[seen.position].name
    at = f" at {seen.index}" if seen.index else ""
    return subject.finding(
        RULE,
        f"second derivative with respect to `{name}` is NaN{at} {seen.words}: the gradient has a "
        "finite derivative there",
        severity="warning",
        input=name,
        index=seen.index,
        place=second_order_place(subject, seen.position),
        evidence={"measured": seen.measured},
        help="torch.where differentiates the branch that it does not choose, too, and 0 times "
        "infinity is NaN: put harmless values into that branch (torch.where around the "
        "denominator or the root, not around the result)",
    )


def _wrong(subject: Subject, place: int) -> Finding:
    attempt = subject.once(differentiate_twice)
    assert attempt.map is not None
    assert attempt.decision is not None
    index = attempt.decision.judgement.inputs[place].index
    name = attempt.map.names[index]
    targets = [attempt.map.names[position] for position in attempt.map.targets]
    found = mismatch(
        attempt.map.map,
        attempt.decision,
        place,
        attempt.map.names,
        seed=subject.seed,
        outputs=[f"the gradient that backward returns for `{target}`" for target in targets],
    )
    cause = saved_without_graph(subject, index) or found.cause
    return subject.finding(
        RULE,
        f"{first_order_words(subject)}wrong second derivative with respect to `{name}`",
        cause=cause.slug if cause else None,
        cause_text=cause.text if cause else "",
        input=name,
        index=found.worst,
        place=second_order_place(subject, target_at_fault(attempt, place), name),
        evidence=found.numbers,
        help=(cause.help if cause is not None and cause.slug == SAVED else HELP) + FIRST_ORDER_ONLY,
    )


def _asymmetric(subject: Subject) -> list[Finding]:
    found = asymmetry(subject, subject.once(differentiate_twice))
    if found is None:
        return []
    names = [subject.problem.inputs[k].name for k in (found.first, found.second)]
    pair = f"`{names[0]}`" if names[0] == names[1] else f"`{names[0]}` and `{names[1]}`"
    finding = subject.finding(
        RULE,
        f"{first_order_words(subject)}second derivatives with respect to {pair} are not symmetric",
        cause="asymmetric",
        cause_text=f"asymmetric: ⟨w₁, H·w₂⟩ = {found.one:.6g}, ⟨w₂, H·w₁⟩ = {found.other:.6g}",
        input=names[0],
        place=second_order_place(subject, found.first),
        evidence={"relative_error": found.relative, "slopes": [found.one, found.other]},
        help="what backward returns is not the gradient of any function here, or its own "
        "derivative is wrong: look at the terms that mix the two inputs",
    )
    return [finding]


def _raised(subject: Subject) -> Finding:
    error = subject.once(differentiate_twice).error
    assert error is not None
    explanation = explain(error.error)
    function = subject.op.function
    return subject.finding(
        RULE,
        f"{first_order_words(subject)}differentiating twice raises {type(error.error).__name__}",
        severity="warning",
        cause_text=explanation.meaning if explanation else "",
        place=source.method(function, "backward") if function else None,
        evidence={"original": f"{type(error.error).__name__}: {error_text(error.error)}"},
        help=explanation.fix
        if explanation
        else "make backward differentiable, or mark it with @once_differentiable so that it "
        "refuses explicitly" + FIRST_ORDER_ONLY,
    )
