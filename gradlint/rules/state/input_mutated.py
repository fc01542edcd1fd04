"""Input mutated without declaration.

What it finds
-------------
An argument that forward or backward writes to without declaring it: no `ctx.mark_dirty`, no
`mutates_args` in a schema, no in-place operation that autograd records. Values are compared, so
that writes by kernels and through `.data` are caught too; integer and boolean arguments are
compared as well. Nor may an output share the memory of an input unnoticed (`x.detach()`): an
in-place operation on the output then changes the input, and autograd does not know.

Nor may backward assign to the `.grad` of an input for which it returns a gradient: `.backward()`
adds the two.

A Function inside the op that writes to an intermediate result is a warning. Running statistics,
which operators update by convention, are at most a note. So is a view that PyTorch itself refuses
to change in place.

Cost: 1 forward and up to 3 backward calls, shared with GL602, GL603, GL605 and GL610; 1 forward and
1 backward for the in-place operation, shared with GL603.

Why it matters
--------------
Everything else that uses that tensor (a residual branch, the layer before, the next step) computes
with changed values, without an error.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x > 0)
        return x.clamp_(min=0).clone()

    @staticmethod
    def backward(ctx, grad_output):
        (positive,) = ctx.saved_tensors
        return grad_output * positive

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
        ctx.save_for_backward(x > 0)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (positive,) = ctx.saved_tensors
        return grad_output * positive

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:7:16  GL601  forward writes to `x` without declaring it: 1 of 3 elements changed
  7 |         return x.clamp_(min=0).clone()
    |                ^^^^^^^^^^^^^^^ written to here
  help       work on a copy (x.clone()), or declare it: ctx.mark_dirty(x), and return x itself
```

References
----------
- `mark_dirty`: https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_dirty.html
- open-mmlab/mmcv#1511, bitsandbytes-foundation/bitsandbytes#736, linkedin/Liger-Kernel#272
"""

from __future__ import annotations

import re
from typing import Any

from gradlint.experiments.outcomes import judged_by, skipped
from gradlint.experiments.preconditions import why_no_forward, why_not_repeatable
from gradlint.experiments.state.guarded_run import WrittenTensor, make_guarded
from gradlint.experiments.state.inplace_after_forward import make_inplace_change
from gradlint.experiments.state.write_places import attribute_place, write_place
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding, Severity
from gradlint.model.rule import Outcome, Rule
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

#: Words in names of arguments that are there to be written to (a convention of PyTorch's own
#: functions: ``running_mean``, ``out``).
WRITTEN_TO = frozenset({"running", "moving", "ema", "buffer", "workspace", "scratch", "out"})


def probe(subject: Subject) -> Outcome:
    """Compare every argument with what it was, and change the outputs in place."""
    reason = why_no_forward(subject)
    if reason:
        return skipped(reason)
    guarded = subject.once(make_guarded)
    if guarded.error is not None and guarded.error.phase == "forward":
        return skipped("forward raised when called again")
    saved = {item.name for item in guarded.saved}
    findings = [
        _finding(subject, item, severity)
        for item in guarded.arguments
        if (severity := _severity(subject, item))
        and not (item.phase == "backward" and item.name in saved)
    ]
    findings += [_inner_finding(subject, RULE, item) for item in guarded.inner]
    findings += [_grad_finding(subject, RULE, *item) for item in guarded.grads]
    note = why_not_repeatable(subject)
    if not note and not findings:
        findings = _alias_findings(subject, RULE)
    if guarded.error is not None:
        note = "backward raised: only the writes of forward were seen"
    return judged_by(findings, note)


def _severity(subject: Subject, item: WrittenTensor) -> Severity | None:
    """Of a finding; None for a write that is allowed."""
    handed = item.handed
    assert handed is not None
    if item.declared or (handed.buffer and item.phase == "forward"):
        return None
    words = re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", item.name).lower())
    if WRITTEN_TO.intersection(words):
        return "info"
    if subject.op.kind not in ("callable", "module") or item.phase == "backward":
        return "error"
    # A plain callable may write to what carries no gradient, by contract, and renormalise its
    # weights where autograd can see it; inside a Function neither is expected.
    if handed.position is None:
        return "info" if item.bumped or not subject.once(make_guarded).python else "error"
    return "warning" if item.bumped and not subject.once(make_guarded).python else "error"


def _finding(subject: Subject, item: WrittenTensor, severity: Severity) -> Finding:
    found, name = item.difference, item.name
    undeclared = " without declaring it" if item.phase == "forward" else ""
    return subject.finding(
        RULE,
        f"{item.phase} writes to `{name}`{undeclared}: {found.count} of {found.total} elements "
        "changed",
        severity=severity,
        cause_text="" if item.bumped else "its version counter is bypassed: PyTorch can't notice",
        input=name,
        index=found.index,
        place=write_place(subject.op.function, item.phase, name, "written to here"),
        evidence=found.evidence(),
        help=f"work on a copy ({name}.clone()), or declare it: ctx.mark_dirty({name}), and return "
        f"{name} itself"
        if item.phase == "forward"
        else f"work on a copy ({name}.clone()): the caller still uses `{name}`",
    )


def _inner_finding(subject: Subject, rule: Rule, item: WrittenTensor) -> Finding:
    """A finding that a Function inside the op writes to an intermediate result."""
    found, name = item.difference, item.name
    return subject.finding(
        rule,
        f"forward of {item.function.__name__} writes to `{name}` without declaring it: "
        f"{found.count} of {found.total} elements changed",
        severity="warning",
        cause_text="an intermediate tensor of the op: everything else that uses it sees the change",
        index=found.index,
        place=write_place(item.function, "forward", name, "written to here"),
        evidence=found.evidence(),
        help=f"work on a copy ({name}.clone()), or declare it: ctx.mark_dirty({name}), and return "
        f"{name} itself",
    )


def _grad_finding(subject: Subject, rule: Rule, name: str, function: Any) -> Finding:
    """A finding that backward writes to the ``.grad`` of an input."""
    return subject.finding(
        rule,
        f"backward writes to `{name}.grad` itself: `.backward()` adds the gradient that it returns "
        "to that",
        input=name,
        place=attribute_place(function, "ctx.grad", "written here", ("backward",)),
        help=f"return the gradient for `{name}` only, and leave `.grad` to autograd",
    )


def _alias_findings(subject: Subject, rule: Rule) -> list[Finding]:
    """Outputs that are an argument's memory, where changing them does harm."""
    aliases = subject.once(make_guarded).aliases
    if not aliases:
        return []
    output, name = aliases[0]
    change = subject.once(make_inplace_change)
    share = f"`{output}` shares memory with `{name}` without declaring it"
    if change.changed:
        wrong = f", and the gradient for `{change.wrong[0].name}` is wrong" if change.wrong else ""
        return [
            subject.finding(
                rule,
                f"{share}: an in-place operation on it changes `{change.changed[0]}`{wrong}",
                input=name,
                output=output,
                evidence=change.wrong[0].evidence() if change.wrong else None,
                help=f"return a copy (.clone()), or `{name}` itself, of which PyTorch makes a view",
            )
        ]
    if change.refused:
        return [
            subject.finding(
                rule,
                f"`{output}` is a view of `{name}`: an in-place operation on it is refused",
                severity="info",
                input=name,
                output=output,
                evidence={"original": change.refused},
                help="return a copy (.clone()) if users may change the output in place",
            )
        ]
    return []
