"""Wrong gradient device.

What it finds
-------------
Backward returned a gradient on a different device than its input. The engine moves zero-dimensional
gradients (a note) and rejects all others.

Why it matters
--------------
The engine raises in the first backward pass on that device. The usual cause is a buffer created
without `device=`, which works until the operator leaves the CPU, or the first GPU.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sum()

    @staticmethod
    def backward(ctx, grad_output):
        return torch.ones(3, device="meta")

    @staticmethod
    def sample_inputs():
        return (torch.tensor([1.0, -2.0, 3.0]),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, grad_output):
        ones = torch.ones(ctx.shape, device=grad_output.device, dtype=grad_output.dtype)
        return grad_output * ones

    @staticmethod
    def sample_inputs():
        return (torch.tensor([1.0, -2.0, 3.0]),)
```

How it looks
------------
```text
mylib/ops.py:10:16  GL204  gradient for `x` is on meta, its input on cpu
  10 |         return torch.ones(3, device="meta")
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ returned for `x`
  help       create it with device=grad_output.device
```

References
----------
- Reports of gradients on the wrong device: open-mmlab/mmdetection#1326
- `validate_outputs` in torch/csrc/autograd/engine.cpp
"""

from __future__ import annotations

from gradlint.experiments.outcomes import any_defect, skipped
from gradlint.experiments.returned_gradients import ReturnedGradient, returned_place
from gradlint.experiments.shape.compared_gradients import engine_finding, returned_tensors
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Compare the device of every returned gradient with that of its input."""
    items, note = returned_tensors(subject)
    findings = [
        _finding(subject, item)
        for item in items
        if item.meta is not None and item.value.device != item.meta.device
    ]
    if not findings:
        text = "a gradient on a different device than its input"
        findings = engine_finding(subject, RULE, "invalid-gradient-device", text)
    if any_defect(findings):
        return Outcome("fail", findings)
    return skipped(note) if note else Outcome("pass", findings)


def _finding(subject: Subject, item: ReturnedGradient) -> Finding:
    assert item.meta is not None
    have, want = str(item.value.device), str(item.meta.device)
    # The engine copies a zero-dimensional gradient over, which it can't from the meta device.
    moved = item.value.dim() == 0 and item.value.device.type != "meta"
    return subject.finding(
        RULE,
        f"gradient for `{item.name}` is on {have}, its input on {want}",
        severity="info" if moved else "error",
        input=item.name,
        place=returned_place(item),
        evidence={"returned_device": have, "input_device": want},
        help="the engine copies it, which waits for the device; create it with "
        "device=grad_output.device"
        if moved
        else "create it with device=grad_output.device, or from a tensor on that device "
        "(torch.zeros_like, x.new_zeros)",
    )
