"""Breaks under checkpointing.

What it finds
-------------
Gradients that change, or a backward that raises, where the tensors that backward needs are kept in
another way: under `torch.utils.checkpoint` (non-reentrant), which runs forward again in backward,
and under saved-tensor hooks, which pack saved tensors and unpack copies of them, as offloading
does. Random numbers come from the same seed; numbers from generators that checkpointing does not
restore (NumPy, `random`, a generator of the op's own) make the finding a warning. A fast stand-in
for checkpointing runs first; what it finds is confirmed with PyTorch's own.

Cost: 3 forward and 2 backward calls.

Why it matters
--------------
Checkpointing and offloading are switched on for whole models. An operator that counts its calls,
caches its first one or reads `saved_tensors` twice fails in somebody else's training run.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.saved_tensors[0] + grad_output * ctx.saved_tensors[0]

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
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x + grad_output * x

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:11:50  GL609  backward raises under torch.utils.checkpoint: CheckpointError: …
  11 |         return grad_output * ctx.saved_tensors[0] + grad_output * ctx.saved_tensors[0]
     |                                                                    ^^^^^^^^^^^^^^^^^ raised
  help       read ctx.saved_tensors once, and let forward do the same in every call
```

References
----------
- `torch.utils.checkpoint`: https://docs.pytorch.org/docs/stable/checkpoint.html
- NVIDIA/TransformerEngine#1334, bitsandbytes-foundation/bitsandbytes#2034
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from gradlint.experiments.baseline_comparison import make_baseline
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_repeatable
from gradlint.experiments.state.repeated_calls import NONDETERMINISTIC_NOTE, differs_on_repeat
from gradlint.experiments.state.saved_otherwise import (
    pull_checkpointed,
    pull_packed,
    pull_recomputed,
)
from gradlint.experiments.state.state_findings import changed_gradient_finding, raised_there_finding
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding, Severity
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import OpRaised
from gradlint.trace.random import common_random_numbers, generator_states

if TYPE_CHECKING:
    Pull = Callable[[], list[torch.Tensor | None]]

RULE = rule_of(__name__)

_HELP = (
    "read ctx.saved_tensors once, save with ctx.save_for_backward, and let forward do and save the "
    "same in every call with the same inputs"
)

_SEED_HELP = "draw from torch's own generators: checkpointing restores no others"


#: In PyTorch's refusal of saved-tensor hooks inside ``torch.func`` transforms.
_UNHOOKED = "saved tensor hooks"


def probe(subject: Subject) -> Outcome:
    """Pull under checkpointing, and under hooks that keep copies."""
    reason = why_not_repeatable(subject)
    if reason:
        return skipped(reason)
    problem, baseline = subject.problem, subject.once(make_baseline)
    assert baseline is not None
    cotangents = baseline.cotangents
    findings: list[Finding] = []
    try:
        if _look(subject, lambda: pull_recomputed(problem, cotangents), "", False):
            foreign = _draws_elsewhere(subject)
            when = "under torch.utils.checkpoint"
            findings = _look(subject, lambda: pull_checkpointed(problem, cotangents), when, foreign)
        if not findings:
            when = "under saved-tensor hooks"
            findings = _look(subject, lambda: pull_packed(problem, cotangents), when, False)
    except OpRaised:
        return skipped("PyTorch refuses saved-tensor hooks inside something that the op calls")
    if findings and differs_on_repeat(subject):
        return skipped(NONDETERMINISTIC_NOTE)
    return Outcome("fail" if findings else "pass", findings)


def _look(subject: Subject, pull: Pull, when: str, foreign: bool) -> list[Finding]:
    severity: Severity | None = "warning" if foreign else None
    help = _SEED_HELP if foreign else _HELP
    baseline = subject.once(make_baseline)
    assert baseline is not None
    try:
        gradients = pull()
    except OpRaised as raised:
        if _UNHOOKED in str(raised.error):
            raise
        return [raised_there_finding(subject, RULE, raised, when, help=help, severity=severity)]
    return [
        changed_gradient_finding(subject, RULE, item, when, help=help, severity=severity)
        for item in baseline.differences(gradients)
    ]


def _draws_elsewhere(subject: Subject) -> bool:
    """Whether forward draws from generators other than torch's own."""
    with common_random_numbers(subject.seed):
        before = generator_states().outside_torch
    subject.problem.forward()
    after = generator_states().outside_torch
    return subject.problem.own_generators.have_moved() or before != after
