"""Missing gradient.

What it finds
-------------
Backward returned `None` for a tensor that needs a gradient, although the output depends smoothly on
it, as a finite difference shows. Dependence without a slope (rounding, comparisons, counting) is
not reported. The severity is error where `None` stands for the first or only differentiable input,
or for all of them; a warning for others; a note where the argument's name says that it is a
constant by convention (a target, a mask, running statistics), or the documentation does.

Where inputs are inferred, a tensor for which backward returns `None` is treated as a constant. If
the output depends on it, a note says so. It is a warning where the source shows that a gradient was
meant: backward computes one and never uses it, the documentation or the arguments beside it say so,
a module passes a parameter, or where it is left out, forward computes it from an input that has a
gradient. In a callable or a module around a Function it is a warning, too, unless the Function
returns `None` for several tensors, or makes noise of the one, as by `log(u) - log1p(-u)`, which
looks meant; so it is with inputs that you gave without `requires_grad` on any of them.

Why it matters
--------------
PyTorch treats `None` as zero. The parameter never learns, and nothing is printed.

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
        return grad_output * weight, None

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
        return grad_output * weight, grad_output * x

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 1.5, -1.0])
```

How it looks
------------
```text
mylib/ops.py:12:38  GL103  no gradient for `weight`: backward returned None, and the …
  12 |         return grad_output * weight, None
     |                                      ^^^^ returned for `weight`
  measured_slope  -1.84
  help       return the gradient; if `weight` is meant to be constant, pass it without requires_grad
```

References
----------
- Layers silently untrained: cornellius-gp/gpytorch#1322, verl-project/verl#6913
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from gradlint.experiments.contract.constants import (
    is_called_constant,
    is_constant_by_name,
    is_sorted_into,
)
from gradlint.experiments.contract.inner_constants import (
    is_chosen,
    is_taken_as_constant,
    leaf_of,
    why_gradient_meant,
)
from gradlint.experiments.input_dependence import clear_slope
from gradlint.experiments.outcomes import any_defect, skipped
from gradlint.experiments.returned_gradients import (
    BACKWARD_NOT_SEEN,
    ReturnedGradient,
    rejection,
    returned_gradients,
    returned_place,
)
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.said_of_gradients import said_instead
from gradlint.model.report import Finding, Severity
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.targets.nodes import LIBRARY_FUNCTIONS
from gradlint.trace.problem import Problem
from gradlint.trace.record import record

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Look for None where a finite difference shows that the output depends on the input."""
    own = subject.run.own
    if own is None and subject.run.nodes:
        findings = list(_inside(subject))
        if findings:
            return Outcome("fail", findings)
        return skipped("the backward that ran belongs to a Function inside")
    if own is None or own.raised is not None:
        return skipped(BACKWARD_NOT_SEEN)
    if rejection(subject, "wrong-number-of-gradients") is not None:
        return skipped("the number of gradients is wrong: see GL101")
    needed = [item for item in returned_gradients(subject) if item.node is own and item.needed]
    missing = [item for item in needed if item.value is None]
    declared = subject.op.intent.surrogate or {}
    findings = []
    for item in missing:
        index = _input_index(subject, item)
        if index is None or item.name in declared:
            continue
        slope = clear_slope(subject, index)
        if slope is not None:
            severity = _severity(item, needed)
            if severity == "warning" and is_sorted_into(subject, index):
                severity = "info"
            findings.append(_finding(subject, item, slope, severity))
    findings += _inferred(subject)
    if any_defect(findings):
        return Outcome("fail", findings)
    note = ""
    if missing and not findings:
        names = ", ".join(item.name for item in missing)
        note = f"None for {names}, on which no output depends smoothly"
    return Outcome("pass", findings, note=note)


def _input_index(subject: Subject, item: ReturnedGradient) -> int | None:
    """Which differentiable input of the problem the argument is."""
    inputs = subject.problem.inputs
    if item.node in subject.run.native:
        # Its positions count tensors alone.
        return item.node.leaves[item.position]
    for index, candidate in enumerate(inputs):
        if candidate.position == item.position:
            return index
    return item.node.leaves[item.position]


def _severity(item: ReturnedGradient, needed: list[ReturnedGradient]) -> Severity:
    if all(other.value is None for other in needed) or item is needed[0]:
        return "error"
    return "info" if is_constant_by_name(item.name) else "warning"


def _inside(subject: Subject) -> Iterator[Finding]:
    """Parameters and inputs that reach one Function alone, whose backward returns None for them."""
    gradients = subject.run.gradients
    for item in returned_gradients(subject):
        leaf = leaf_of(item)
        if leaf is None or not item.needed or item.value is not None:
            continue
        if gradients is None or gradients[leaf] is not None:
            continue
        slope = clear_slope(subject, leaf)
        if slope is None:
            continue
        found = [_finding(subject, item, slope, "error")]
        if is_taken_as_constant(subject, item, leaf):
            found = list(_taken_as_constant(subject, item, slope))
        elif is_chosen(subject, item, leaf):
            found = [_meant(subject, item, slope, why_gradient_meant(subject, item))]
        yield from (_of_input(subject, one, item, leaf) for one in found)


def _of_input(subject: Subject, finding: Finding, item: ReturnedGradient, leaf: int) -> Finding:
    """``finding`` on an argument of a Function inside as one on the input that it is. The Function
    of a custom operator has no names for its arguments."""
    name = subject.problem.inputs[leaf].name
    found = replace(finding, input=name)
    if is_called_constant(subject, name):
        found = replace(found, grounds=replace(found.grounds, explained="constant"))
    if item.node.function.__module__ == LIBRARY_FUNCTIONS:
        words = [text.replace(item.name, name) for text in (found.message, found.help)]
        found = replace(found, message=words[0], help=words[1])
    return found


def _inferred(subject: Subject) -> Iterator[Finding]:
    """What is said of the tensors that gradlint itself took for constants."""
    for item, slope in taken_as_constants(subject):
        yield from _taken_as_constant(subject, item, slope)


def _taken_as_constant(subject: Subject, item: ReturnedGradient, slope: float) -> Iterator[Finding]:
    """A warning where something says that a gradient was meant, else a note; nothing where the
    argument's name says that it is a constant."""
    reason = why_gradient_meant(subject, item)
    if reason:
        yield _meant(subject, item, slope, reason)
    elif not is_constant_by_name(item.node.arguments[item.position]):
        yield _constant(subject, item, slope)


def _meant(subject: Subject, item: ReturnedGradient, slope: float, reason: str) -> Finding:
    finding = _finding(subject, item, slope, "warning")
    said = {"meant to have one": reason} if reason else {}
    return replace(finding, evidence={**finding.evidence, **said})


def _constant(subject: Subject, item: ReturnedGradient, slope: float) -> Finding:
    name = item.name
    return subject.finding(
        RULE,
        f"`{name}` is treated as a constant: backward returned None for it, and the output depends "
        "on it",
        severity="info",
        input=name,
        place=returned_place(item),
        evidence={"measured_slope": slope},
        help=f"if `{name}` needs a gradient, return it, and give inputs that require it (--inputs "
        f"or sample_inputs); if not, raise when ctx.needs_input_grad[{item.position}], so that "
        "nobody relies on it",
    )


def _finding(subject: Subject, item: ReturnedGradient, slope: float, severity: Severity) -> Finding:
    name = item.name
    constant = (
        f"by its name `{name}` is a constant; `.detach()` it in the caller, or raise when "
        f"ctx.needs_input_grad[{item.position}], so that nobody relies on its gradient"
    )
    return subject.finding(
        RULE,
        f"no gradient for `{name}`: backward returned None, and the output depends on it",
        severity=severity,
        input=name,
        place=returned_place(item),
        evidence={"measured_slope": slope},
        grounds=subject.grounds(
            explained="constant"
            if is_called_constant(subject, name)
            else said_instead(item.node.function)
        ),
        help=constant
        if severity == "info"
        else f"return the gradient of `{name}`; if it is meant to be a constant, pass it without "
        f"requires_grad, and raise when ctx.needs_input_grad[{item.position}]",
    )


def taken_as_constants(subject: Subject) -> Iterator[tuple[ReturnedGradient, float]]:
    """Arguments for which backward returned None although outputs depend on them, with the slope.

    Only where gradlint chose which arguments require grad, and only those that it left out.
    Backward must return None even when the argument requires grad: it may compute only what is
    asked for, or refuse.
    """
    own = subject.run.own
    if subject.sample.origin != "inferred" or own is None:
        return
    for item in returned_gradients(subject):
        if item.node is not own or own.function is not subject.op.function or item.needed:
            continue
        problem = _requiring(subject, item.position)
        if item.value is not None or problem is None:
            continue
        index = next(i for i, x in enumerate(problem.inputs) if x.position == item.position)
        found = record(problem)
        returned = found.own.returned if found.own is not None else ()
        if not isinstance(returned, tuple) or len(returned) <= item.position:
            continue
        slope = clear_slope(subject, index, problem) if returned[item.position] is None else None
        if slope is not None:
            yield item, slope


def _requiring(subject: Subject, position: int) -> Problem | None:
    """The problem with one more argument that requires grad; None where it has no derivatives."""
    args = list(subject.sample.args)
    value = args[position] if position < len(args) else None
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    if not (value.is_floating_point() or value.is_complex()):
        return None
    args[position] = value.detach().clone().requires_grad_()
    return subject.problem.at(replace(subject.sample, args=tuple(args)))
