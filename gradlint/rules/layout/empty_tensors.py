"""Backward fails on empty tensors.

What it finds
-------------
A backward that fails where a dimension has size 0 and forward accepts that. It must not raise.
Where nothing depends on an input, its gradient must be zero, neither NaN nor uninitialised memory
(which is filled with NaN here). Where outputs still depend on it, its gradient is measured as
usual. A forward that refuses empty tensors is left alone. Only a note is given for a backward that
raises where an axis other than the batch axis is empty, and for what PyTorch's own operators make
of empty tensors where none of your backward code is involved.

Cost: 1 forward call and 1 backward call for each of up to 3 dimensions; 2 further forward calls
where outputs have elements.

Why it matters
--------------
A mask that selects nothing, an expert that receives no token, an image without boxes: empty tensors
come with the data, hours into training. A mean over nothing makes all weights NaN, and a kernel
that is not launched leaves its gradient uninitialised.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        products = grad_output * x
        return grad_output * scale, products.mean(0) * products.shape[0]

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return torch.randn(4, 3, generator=generator), torch.randn(3, generator=generator)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        products = grad_output * x
        return grad_output * scale, products.sum(0)

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return torch.randn(4, 3, generator=generator), torch.randn(3, generator=generator)
```

How it looks
------------
```text
mylib/ops.py:13:37  GL705  gradient for `scale` is not zero where `x` has shape [0, 3]
  13 |         return grad_output * scale, products.mean(0) * products.shape[0]
     |                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ returned for `scale`
             index      returned     expected       error
             [0]            nan     +0.000000         inf
  help       return zeros where there is nothing to sum, and make gradients with zeros_like
```

References
----------
- Empty inputs: rusty1s/pytorch_scatter#39, pytorch/FBGEMM#1993
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gradlint.experiments.baseline_comparison import compare
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.judge_at_other_inputs import RAISED, judged_inputs
from gradlint.experiments.layout.independent_axes import is_batch
from gradlint.experiments.layout.other_sizes import SizeTrial, SizeTrials
from gradlint.experiments.outcomes import any_defect, skipped
from gradlint.experiments.preconditions import why_not_resizable
from gradlint.experiments.state.poisoned_memory import deterministic
from gradlint.experiments.subject import Subject
from gradlint.experiments.torch_owned_backward import TORCH_OWNED_NOTE, is_torch_owned_backward
from gradlint.experiments.value.findings_elsewhere import findings_elsewhere
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.divisions import MakesNan, ZeroDivisors
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

HELP = (
    "return zeros where there is nothing to sum, make gradients with torch.zeros_like, and return"
    " early where a tensor is empty"
)


def probe(subject: Subject) -> Outcome:
    """Run backward with each dimension at size 0 that forward accepts."""
    reason = why_not_resizable(subject)
    if reason:
        return skipped(reason)
    sizes = SizeTrials(subject)
    with deterministic(fill=True):
        tried = sizes.alone(0)
    findings: list[Finding] = []
    for item in tried:
        if any_defect(findings):
            break
        if item.faulty:
            # Empty batches come with the data; other axes may well be refused by raising.
            mild = item.judgement.verdict == RAISED and not (item.batch and is_batch(subject))
            findings += findings_elsewhere(
                subject,
                RULE,
                item.judgement,
                item.words,
                cause="empty",
                help=HELP,
                kind="empty",
                severity="info" if mild else None,
                explained=item.explained,
            )
        else:
            findings += _not_zero(subject, item)
    if any_defect(findings):
        return Outcome("fail", findings)
    if not tried:
        less = sizes.left_out or "nothing to resize"
        note = "forward refuses empty tensors" if sizes.refused else less
        return Outcome("skipped", findings, note=note)
    return Outcome("pass", findings, note=sizes.left_out)


def _forward_is_singular(there: Subject) -> bool:
    """Whether forward itself computes NaN, or divides by zero, which no output shows as all are
    empty: the mean and the length of nothing, through which every derivative is NaN."""
    makes_nan, divisors = MakesNan(), ZeroDivisors()

    @contextmanager
    def watched() -> Iterator[None]:
        with makes_nan, divisors:
            yield

    run = there.problem.through(lambda invoke: invoke)
    run.surroundings = watched
    try:
        run.forward()
    except OpRaised:
        return False
    finally:
        there.problem.forward_calls += run.forward_calls
    return makes_nan.found or divisors.infinite


def _not_zero(subject: Subject, item: SizeTrial) -> list[Finding]:
    """Findings where all outputs are empty, so that nothing depends on anything."""
    if any(output.value.numel() for output in item.judgement.outputs):
        return []
    findings = []
    # A mean over nothing is NaN, and so is what PyTorch makes of its gradient.
    torch_owned = is_torch_owned_backward(subject)
    singular = _forward_is_singular(item.judgement.subject)
    # A gradient that does not depend on the outputs at all (an auxiliary loss that is passed
    # through) was reported at the sample.
    judged = judged_inputs(subject)
    for position, gradient in enumerate(item.judgement.gradients):
        given = subject.problem.inputs[position]
        if gradient is None or position not in judged:
            continue
        zero = torch.zeros_like(gradient)
        found = compare(position, given.name, gradient.detach(), zero, None)
        if found is not None:
            findings.append(
                subject.finding(
                    RULE,
                    f"gradient for `{given.name}` is not zero where {item.words}",
                    grounds=subject.grounds(
                        where="empty",
                        torch_owned=torch_owned,
                        explained="singular" if singular and bool(gradient.isnan().any()) else None,
                    ),
                    cause="empty",
                    cause_text="all outputs are empty, so nothing depends on it"
                    + (f"; {TORCH_OWNED_NOTE}" if torch_owned else ""),
                    input=given.name,
                    index=found.index,
                    place=gradient_place(subject, given),
                    evidence=found.evidence(),
                    help=HELP,
                )
            )
    return findings
