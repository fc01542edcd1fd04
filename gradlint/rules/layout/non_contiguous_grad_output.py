"""Gradient depends on the layout of grad_output.

What it finds
-------------
A backward that assumes its incoming gradient to be contiguous. The same cotangents are passed
transposed in memory, as a slice of a wider buffer, as every second element of one, and in
channels_last format where they have four or five dimensions; the gaps hold NaN. The gradients must
be the same, and nothing may raise. A fault of PyTorch's own kernels, where none of your backward
code is involved, is only a note.

Cost: 1 forward and up to 4 backward calls.

Why it matters
--------------
Autograd passes gradients on as the next operator left them. A transposition, a slice or a
convolution after the operator is enough to make the gradient silently wrong, or to stop training
with an error in backward. Tests that draw their gradients at random never see it.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        flat = grad_output.view(-1)
        return (flat * ctx.scale).view(grad_output.shape), None

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return torch.randn(3, 4, generator=generator), 0.5
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        flat = grad_output.contiguous().view(-1)
        return (flat * ctx.scale).view(grad_output.shape), None

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return torch.randn(3, 4, generator=generator), 0.5
```

How it looks
------------
```text
mylib/ops.py:11:16  GL701  backward raises RuntimeError where grad_output is transposed in memory
  11 |         flat = grad_output.view(-1)
     |                ^^^^^^^^^^^^^^^^^^^^ raised here
  cause      RuntimeError: view size is not compatible with input tensor's size and stride …
  help       begin backward with grad_output = grad_output.contiguous(), or use its strides
```

References
----------
- Gradients arrive in any layout: Dao-AILab/flash-attention#355, pytorch/vision#920
- gradcheck passes contiguous ones only: pytorch/pytorch#194719
"""

from __future__ import annotations

import torch

from gradlint.experiments.judge_at_other_inputs import RIGHT
from gradlint.experiments.layout.cotangent_layouts import call_with_cotangents, in_layout
from gradlint.experiments.layout.layout_findings import cotangent_findings
from gradlint.experiments.layout.other_sizes import SizeTrial, SizeTrials
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_layouts_not_comparable, why_not_resizable
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample
from gradlint.numerics.directions import cotangent
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

#: Calls, at most, with one more axis.
CALLS_MORE = 24

#: Relative difference up to which two gradients may be the same one (heuristic: what is more is
#: looked at closely).
LIKE = 1e-4

#: Axes of an output up to which most views of a transposed grad_output are possible.
FEW_AXES = 2

LAYOUTS = ("transposed", "padded", "strided", "channels_last")

HELP = (
    "begin backward with grad_output = grad_output.contiguous(), or pass its strides to the code"
    " that reads its memory"
)


def probe(subject: Subject) -> Outcome:
    """Pass the same cotangents in other layouts."""
    reason = why_layouts_not_comparable(subject)
    if reason:
        return skipped(reason)
    looks = [call_with_cotangents(subject, layout) for layout in LAYOUTS]
    seen = [item for item in looks if item is not None]
    if not seen:
        return skipped("grad_output has one element: it has no other layout")
    changed = [item for item in seen if not item.same]
    findings = (
        cotangent_findings(subject, RULE, changed, HELP) if changed else _with_another_axis(subject)
    )
    return Outcome("fail" if findings else "pass", findings)


def _with_another_axis(subject: Subject) -> list[Finding]:
    """What a transposed grad_output shows where tensors have one more leading axis: with few axes,
    every view that backward takes of it may be possible."""
    if all(output.value.dim() > FEW_AXES for output in subject.run.outputs):
        return []
    if why_not_resizable(subject) or not subject.affords(CALLS_MORE):
        return []
    sizes = SizeTrials(subject)
    for leading in sizes.leading_choices():
        if _depends_on_layout(subject, sizes.sample_with_leading_axis(subject.sample, leading)):
            enlarged = sizes.with_leading_axis_added(leading)
            found = [] if enlarged is None else _transposed_there(subject, enlarged)
            if found or not subject.affords(CALLS_MORE):
                return found
    return []


def _transposed_there(subject: Subject, enlarged: SizeTrial) -> list[Finding]:
    """What a transposed grad_output shows at the other sizes of ``enlarged``, where the gradient is
    right."""
    if enlarged.judgement.verdict != RIGHT:
        return []
    there, here = enlarged.judgement.subject, subject.problem
    forward, backward = there.problem.forward_calls, there.problem.backward_calls
    seen = None if why_layouts_not_comparable(there) else call_with_cotangents(there, "transposed")
    here.forward_calls += there.problem.forward_calls - forward
    here.backward_calls += there.problem.backward_calls - backward
    if seen is None or seen.same:
        return []
    return cotangent_findings(there, RULE, [seen], HELP, f" and {enlarged.words}")


def _depends_on_layout(subject: Subject, sample: Sample | None) -> bool:
    """Whether at ``sample`` backward raises, or returns something else, where grad_output is
    transposed; one call of forward and two of backward."""
    if sample is None:
        return False
    here, there = subject.problem, subject.problem.at(sample)
    generator = torch.Generator().manual_seed(subject.seed)
    plain: list[torch.Tensor | None] | None = None
    try:
        leaves, outputs = there.linearize()
        chosen = [output for output in outputs if output.differentiable]
        vs = {output.name: cotangent(output.value.detach(), generator) for output in chosen}
        altered = in_layout(vs, "transposed")
        if altered is None:
            return False
        given = [vs[output.name] for output in chosen]
        plain = there.backward(chosen, leaves, given, retain_graph=True)
        found = there.backward(chosen, leaves, [altered[output.name] for output in chosen])
    except OpRaised as raised:
        return raised.phase == "backward" and plain is not None
    finally:
        here.forward_calls += there.forward_calls
        here.backward_calls += there.backward_calls
    return not all(map(_is_alike, plain, found))


def _is_alike(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and torch.allclose(one, other, rtol=LIKE, equal_nan=True)
