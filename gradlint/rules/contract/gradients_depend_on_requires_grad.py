"""Gradients depend on which inputs require grad.

What it finds
-------------
Inputs are frozen, one subset after another (with more than four inputs: each alone, and all but
each). Backward must not raise, must not return `None` for an input that still requires grad, and
must return the same gradients as when all inputs require grad; forward must return the same. In
addition, one tensor is passed
for two inputs of the same shape: its gradient must be the sum of the two. An operator that refuses
a subset explicitly (`NotImplementedError`) gets a note.

Cost: 1 forward and 1 backward for each subset (2 for two inputs, 6 for three, at most 14), and 2 of
each for the tensor passed twice.

Why it matters
--------------
Gradient checks make every input require grad. In training, weights are frozen and data needs no
gradient: layers silently stay untrained, or backward crashes in fine-tuning only.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output * weight
            grad_weight = grad_output * x
        return grad_x, grad_weight

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 1.5, -1.0])
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output * weight
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output * x
        return grad_x, grad_weight

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 1.5, -1.0])
```

How it looks
------------
```text
mylib/ops.py:16:24  GL110  the gradient for `weight` is missing where only `weight` requires grad
  help       test ctx.needs_input_grad once for each input, at its own position
```

References
----------
- `needs_input_grad`: https://docs.pytorch.org/docs/stable/notes/extending.html
- cornellius-gp/gpytorch#1322, verl-project/verl#6913, linkedin/Liger-Kernel#1157
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from gradlint.experiments.baseline_comparison import (
    Baseline,
    Difference,
    compare,
    make_baseline,
    share_of,
)
from gradlint.experiments.contract.requires_grad_subsets import (
    closed_over,
    passed_twice,
    subsets,
    twins,
)
from gradlint.experiments.outcomes import judged_by, skipped
from gradlint.experiments.preconditions import why_not_repeatable
from gradlint.experiments.state.repeated_calls import NONDETERMINISTIC_NOTE, differs_on_repeat
from gradlint.experiments.state.state_findings import changed_gradient_finding, raised_there_finding
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.said_of_gradients import said_instead
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.numerics.products import widened
from gradlint.rules.catalogue import rule_of
from gradlint.trace.altered import pull_altered
from gradlint.trace.op_io import OpRaised, Output

RULE = rule_of(__name__)

#: Stands for all outputs among the positions of the inputs that were reported.
_OF_OUTPUTS = -3

_HELP = (
    "test ctx.needs_input_grad once for each input, at its own position, and compute each "
    "gradient independently of the others"
)

_REENTRANT_HELP = (
    "pass to the Function what backward reads beside its arguments, and return the gradients; or"
    " say in the documentation that an argument must require grad"
)

_FORWARD_HELP = (
    "compute the same in forward, whichever inputs require grad: what a frozen input adds must not"
    " be left out; ask only what is to be saved for backward"
)

_TWICE_HELP = "do not compare the arguments by identity, and do not write to them"


def probe(subject: Subject) -> Outcome:
    """Freeze inputs in turn, and pass one tensor for two."""
    reason = why_not_repeatable(subject)
    if reason:
        return skipped(reason)
    count = len(subject.problem.inputs)
    if count < 2:
        return skipped("only one input requires grad: there is no other to freeze")
    findings: list[Finding] = []
    reported: set[int] = set()
    for chosen in subsets(count, subject.seed):
        if closed_over(subject).issubset(chosen):
            findings += _frozen(subject, chosen, reported)
    pair = twins(subject)
    if pair is not None and not findings:
        findings += _twice(subject, *pair)
    if findings and differs_on_repeat(subject):
        return skipped(NONDETERMINISTIC_NOTE)
    return judged_by(findings)


def _frozen(subject: Subject, chosen: list[int], reported: set[int]) -> list[Finding]:
    """Findings where only the inputs ``chosen`` require grad, at most one an input."""
    baseline, inputs = subject.once(make_baseline), subject.problem.inputs
    assert baseline is not None
    flags = [position in chosen for position in range(len(inputs))]
    when = _when([item.name for item in inputs], flags)
    try:
        outputs, gradients = pull_altered(subject.problem, baseline.cotangents, requires_grad=flags)
    except OpRaised as raised:
        if -1 in reported:
            return []
        reported.add(-1)
        return [raised_there_finding(subject, RULE, raised, when, help=_HELP)]
    changed_output = _changed_output(baseline, outputs)
    if changed_output is not None:
        # The gradients are then those of another function.
        if _OF_OUTPUTS in reported:
            return []
        reported.add(_OF_OUTPUTS)
        changed = _output_finding(subject, changed_output, when)
        if _takes_whole_numbers(subject, baseline.cotangents, flags):
            changed = replace(changed, grounds=subject.grounds(explained="other-function"))
        return [changed]
    found = []
    differences = baseline.differences(gradients, among=chosen)
    if subject.problem.fills_grad and all(gradient is None for gradient in gradients):
        # A backward pass inside of backward brings these gradients: the Function sees none of them.
        return [] if -2 in reported else _all_missing(subject, differences, reported, when)
    for item in differences:
        if item.position not in reported:
            reported.add(item.position)
            changed = changed_gradient_finding(subject, RULE, item, when, help=_HELP)
            explained = said_instead(subject.op.function or subject.op.defining)
            found.append(replace(changed, grounds=subject.grounds(explained=explained)))
    return found


def _changed_output(baseline: Baseline, outputs: Sequence[Output]) -> Difference | None:
    """The first output in which forward returned other values than with all inputs requiring grad.

    Outputs of another shape, or a missing one, are left alone: what is returned for backward alone
    need not be there without it."""
    for position, item in enumerate(outputs):
        expected, got = baseline.outputs.get(item.name), item.value.detach()
        if expected is None or expected.shape != got.shape or not expected.numel():
            continue
        if not (expected.is_floating_point() or expected.is_complex()):
            continue
        dense = widened(expected)
        allowed = torch.full_like(dense.abs(), share_of(expected.dtype) * float(dense.abs().max()))
        difference = compare(position, item.name, got, expected, allowed)
        if difference is not None:
            return difference
    return None


def _takes_whole_numbers(
    subject: Subject, cotangents: dict[str, torch.Tensor], flags: list[bool]
) -> bool:
    """Whether forward returns the same with and without the frozen inputs once one guessed input
    holds whole numbers, none of them zero: a zero point, which one way converts to integers. Two
    calls for each input, where one was found to change the outputs."""
    values = subject.problem.values()
    if subject.sample.origin != "inferred":
        return False
    for position, value in enumerate(values):
        if value.is_complex():
            continue
        whole = [*values[:position], value.round() + 1.0 * (value >= -0.5), *values[position + 1 :]]
        try:
            alike, frozen = (
                pull_altered(subject.problem, cotangents, values=whole, requires_grad=asked)[0]
                for asked in ([True] * len(flags), flags)
            )
        except OpRaised:
            continue
        if len(alike) == len(frozen) and all(
            one.value.shape == other.value.shape
            and torch.allclose(one.value, other.value, rtol=share_of(one.value.dtype), atol=0.0)
            for one, other in zip(alike, frozen, strict=True)
        ):
            return True
    return False


def _output_finding(subject: Subject, difference: Difference, when: str) -> Finding:
    return subject.finding(
        RULE,
        f"forward returns something else for `{difference.name}` {when}",
        output=difference.name,
        index=difference.index,
        evidence=difference.evidence(),
        help=_FORWARD_HELP,
    )


def _all_missing(
    subject: Subject, differences: Sequence[Difference], reported: set[int], when: str
) -> list[Finding]:
    """One finding for all the gradients that are missing together."""
    reported.add(-2)
    reported.update(item.position for item in differences)
    if not differences:
        return []
    first = changed_gradient_finding(subject, RULE, differences[0], when, help=_REENTRANT_HELP)
    first.cause_text = (
        "autograd runs the backward of a Function only where one of its arguments requires grad, "
        "and the backward pass inside, which leaves gradients in `.grad`, only with it"
    )
    return [first]


def _when(names: list[str], flags: list[bool]) -> str:
    needed = [f"`{name}`" for name, flag in zip(names, flags, strict=True) if flag]
    frozen = [f"`{name}`" for name, flag in zip(names, flags, strict=True) if not flag]
    if len(needed) <= len(frozen):
        verb = "requires" if len(needed) == 1 else "require"
        return f"where only {', '.join(needed)} {verb} grad"
    verb = "does" if len(frozen) == 1 else "do"
    return f"where {', '.join(frozen)} {verb} not require grad"


def _twice(subject: Subject, first: int, second: int) -> list[Finding]:
    """A finding where the gradient of one tensor passed for two inputs is not the sum of the
    gradients of two equal tensors."""
    other = subject.problem.inputs[second].name
    when = f"where the same tensor is passed for `{other}`"
    try:
        difference = passed_twice(subject, first, second)
    except OpRaised as raised:
        return [raised_there_finding(subject, RULE, raised, when, help=_TWICE_HELP)]
    if difference is None:
        return []
    return [changed_gradient_finding(subject, RULE, difference, when, help=_TWICE_HELP)]
