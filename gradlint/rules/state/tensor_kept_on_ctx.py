"""Tensor kept alive on ctx.

What it finds
-------------
Tensors in attributes of `ctx`. An output there closes a reference cycle: the output holds its node,
and the node holds the output, so that the graph outlives everything that the user deletes until the
garbage collector runs, if it ever does. This is measured with the collector switched off. An input
there is kept after backward for as long as the output lives; changing it in place goes unnoticed;
saved-tensor hooks (offloading, checkpointing) do not see it. An intermediate tensor, a mask, or an
output without a gradient (such as indices) is a note, and so is what a Function that this one calls
has saved in a context of its own.

Cost: 1 forward and 1 backward call, shared with GL606.

Why it matters
--------------
Memory grows from step to step, and nothing points to the operator.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x.exp()
        return ctx.y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.y

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
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:6:9  GL604  `ctx.y` holds `output`: the graph outlives its last user
  6 |         ctx.y = x.exp()
    |         ^^^^^^^^^^^^^^^ kept here
  help       ctx.save_for_backward(y), which frees it after backward and breaks the cycle
```

References
----------
- `save_for_backward`:
  https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html
- dmlc/dgl#1060, asappresearch/sru#171
"""

from __future__ import annotations

from gradlint.experiments.outcomes import judged_by, skipped
from gradlint.experiments.preconditions import why_not_guarded
from gradlint.experiments.state.lifetimes import HeldTensor, make_lifetime
from gradlint.experiments.state.write_places import attribute_place
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding, Severity
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

#: Elements up to which a tensor that is no input or output is a constant, not worth a note.
CONSTANT = 1


def probe(subject: Subject) -> Outcome:
    """Look at what nodes hold after backward, and at which nodes outlive their outputs."""
    reason = why_not_guarded(subject)
    if reason:
        return skipped(reason)
    lifetime = subject.once(make_lifetime)
    if lifetime is None:
        return skipped("an identical second call raised")
    findings = []
    held = [item for item in lifetime.held if item.kin == "output"]
    inside = [item for item in lifetime.held if item.saved_inside]
    # One without a gradient has no node either: it closes no cycle.
    plain = {output.name for output in subject.run.outputs if not output.differentiable}
    if held and all(item in inside or item.name in plain for item in held):
        findings.append(_kept(subject, held, "info"))
    elif lifetime.survived and held:
        findings.append(_cycle(subject, held))
    elif lifetime.survived:
        findings.append(_survived(subject, lifetime.survived[0]))
    elif held:
        findings.append(_kept(subject, held, "warning"))
    inputs = [item for item in lifetime.held if item.kin == "input"]
    if inputs:
        severity: Severity = "info" if all(item in inside for item in inputs) else "warning"
        findings.append(_kept(subject, inputs, severity))
    others = [
        item
        for item in lifetime.held
        if item.kin in ("intermediate", "argument")
        and item.numel > CONSTANT
        and item.attribute.count(".") == 1  # what an object holds may be the caller's
    ]
    if others:
        findings.append(_kept(subject, others, "info"))
    if not lifetime.seen and not findings:
        return skipped("no Python Function with a `ctx` is involved")
    return judged_by(findings)


def _cycle(subject: Subject, held: list[HeldTensor]) -> Finding:
    item = held[0]
    return subject.finding(
        RULE,
        f"`{item.attribute}` holds `{item.name}`: the graph outlives its last user",
        output=item.name,
        cause="reference-cycle",
        cause_text="reference-cycle: the output holds its node, and the node holds the output",
        place=attribute_place(item.function, item.attribute, "kept here"),
        evidence={"bytes": sum(other.size for other in held)},
        help="use ctx.save_for_backward(…) for it: freed after backward, and no reference cycle",
    )


def _survived(subject: Subject, node: str) -> Finding:
    return subject.finding(
        RULE,
        f"the graph ({node}) outlives its outputs: something in the op still holds it",
        severity=None if subject.op.function is not None else "info",
        help="do not keep outputs, or what is connected to them, on classes, modules or in "
        "globals; detach what must be kept",
    )


def _kept(subject: Subject, held: list[HeldTensor], severity: Severity) -> Finding:
    item = held[0]
    names = ", ".join(f"`{other.attribute}`" for other in held)
    what = f"{item.kin} `{item.name}`" if item.name else f"tensor of {item.shape}"
    verb = "holds" if len(held) == 1 else "hold tensors such as"
    return subject.finding(
        RULE,
        f"{names} {verb} the {what} after backward",
        severity=severity,
        input=item.name if item.kin == "input" else None,
        cause_text="not freed after backward, not checked for in-place changes, not seen by "
        "saved-tensor hooks"
        + ("; a Function inside saved it in a context of its own" if item.saved_inside else ""),
        place=attribute_place(item.function, item.attribute, "kept here"),
        evidence={"bytes": sum(other.size for other in held)},
        help="ctx.save_for_backward(…) accepts any tensor; keep only plain values on `ctx`",
    )
