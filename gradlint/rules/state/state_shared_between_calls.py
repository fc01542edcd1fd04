"""State shared between calls.

What it finds
-------------
Calls that disturb each other. Forward is called at the sample and then, before the first call's
backward, with other values: the first call's output and gradient must not change. Then the second
call's backward runs, and the first gradient must still not change. State on a class, a module or in
a global instead of `ctx`, and buffers that are handed out twice, fail here.

A module that keeps tensors in its attributes is called twice more, first with other values and then
with the sample's: a cache that is filled by the first call must not change the second. If it does
not, both are tried at two sizes in turn. A memory is no cache: what the second call writes again (a
hidden state, a moving average) may depend on the first, and so may what the first batch alone
decides, as in an initialisation that depends on data.

Cost: 2 forward and 2 backward calls; twice that, and up to 18 forward calls, for a module that
keeps tensors.

Why it matters
--------------
An operator that is used twice in a network is called in exactly this order. Each call alone is
right, so that no gradient check sees the fault.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        Op.x = x.detach().clone()
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * Op.x.cos()

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
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:11:16  GL608  the gradient for `x` changes after a later call of the op
  help       keep what backward needs with ctx.save_for_backward (plain values on `ctx`) …
```

References
----------
- Extending torch.autograd: https://docs.pytorch.org/docs/stable/notes/extending.html
- BobMcDear/attorch, asappresearch/sru#171
"""

from __future__ import annotations

import inspect
from dataclasses import replace

from gradlint.experiments.outcomes import judged_by, skipped
from gradlint.experiments.preconditions import why_not_repeatable
from gradlint.experiments.state.interleaved_calls import interleave
from gradlint.experiments.state.kept_by_module import KeptByModule, kept_by_module
from gradlint.experiments.state.repeated_calls import NONDETERMINISTIC_NOTE, differs_on_repeat
from gradlint.experiments.state.state_findings import changed_gradient_finding, raised_there_finding
from gradlint.experiments.state.write_places import attribute_place
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

_HELP = (
    "keep what backward needs with ctx.save_for_backward (plain values on `ctx`), not on a class, "
    "a module or in a global, and return new memory from each call"
)

_CACHE_HELP = (
    "keep only what is the same for all calls that read it, under a key of everything that it "
    "depends on (sizes, dtype, device); compute what depends on values or parameters at each call"
)


def probe(subject: Subject) -> Outcome:
    """Call the op with other values between a forward and its backward, and before both."""
    reason = why_not_repeatable(subject)
    if reason:
        return skipped(reason)
    outcome = _interleaved(subject)
    if outcome.findings:
        return outcome
    kept = kept_by_module(subject)
    if kept is None:
        return outcome
    findings = [_kept_finding(subject, kept)]
    return skipped(NONDETERMINISTIC_NOTE) if differs_on_repeat(subject) else judged_by(findings)


def _interleaved(subject: Subject) -> Outcome:
    seen = interleave(subject)
    when = "after a later call of the op"
    if seen is None:
        return skipped("the op accepts no other values than the sample's")
    if seen.raised is not None:
        return Outcome("fail", [raised_there_finding(subject, RULE, seen.raised, when, help=_HELP)])
    findings = [
        subject.finding(
            RULE,
            f"`{item.name}` is overwritten by a later call of the op: {item.count} of {item.total} "
            "elements",
            output=item.name,
            index=item.index,
            evidence=item.evidence(),
            help=_HELP,
        )
        for item in seen.outputs
    ]
    if not findings:
        findings = [
            changed_gradient_finding(subject, RULE, item, when, help=_HELP)
            for item in seen.gradients
        ]
    if not findings:
        findings = [
            changed_gradient_finding(
                subject, RULE, item, "after the backward of another call", help=_HELP
            )
            for item in seen.overwritten
        ]
    if findings and differs_on_repeat(subject):
        return skipped(NONDETERMINISTIC_NOTE)
    return Outcome("fail" if findings else "pass", findings)


def _kept_finding(subject: Subject, kept: KeptByModule) -> Finding:
    """A finding that a cache of a module changes a later call."""
    when = f"after {kept.when}"
    reason = f"`{kept.attribute}` is kept from that call and not computed anew"
    holder = type(kept.holder)
    methods = [name for name, value in vars(holder).items() if inspect.isfunction(value)]
    methods = [name for name in methods if name != "__init__"]
    place = attribute_place(holder, f"self.{kept.attribute}", "kept here", methods)
    if kept.raised is not None:
        found = raised_there_finding(subject, RULE, kept.raised, when, help=_CACHE_HELP)
        return replace(found, cause_text=reason)
    if not kept.outputs:
        return changed_gradient_finding(
            subject,
            RULE,
            kept.gradients[0],
            when,
            help=_CACHE_HELP,
            cause_text=reason,
            place=place,
        )
    item = kept.outputs[0]
    return subject.finding(
        RULE,
        f"`{item.name}` is another one {when}",
        cause_text=reason,
        output=item.name,
        index=item.index,
        place=place,
        evidence=item.evidence(),
        help=_CACHE_HELP,
    )
