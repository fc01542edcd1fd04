"""Devices disagree.

What it finds
-------------
The same arguments give different outputs or gradients on a GPU than on the CPU, by more than
rounding explains. The order of summation, TF32, and elements that change when the inputs move by a
roundoff are allowed for. The rule runs on cuda samples of ops that also run on the CPU and draw no
random numbers. Cost: 1 forward and 1 backward call on the CPU.

Why it matters
--------------
Tests run on the CPU, training on the GPU, and each has its own kernels. One of them is wrong; the
finding says which tensor and where.

Bad
---
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
        if x.is_cuda:
            return grad_output * x.cos() * 2
        return grad_output * x.cos()

    @staticmethod
    def sample_inputs():
        return torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
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
        return torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
```

How it looks
------------
```text
mylib/ops.py:13:20  GL802  gradient for `x` differs between cpu and cuda (15 of 15 elements)
             index      returned     expected       error
             [0, 2]    +0.812403    +1.624806     8.1e-01
  help       compare the kernels of the two devices (`returned` is from the CPU …)
```

References
----------
- Reports: NVIDIA/TransformerEngine#2921, open-mmlab/mmcv#1212
"""

from __future__ import annotations

from gradlint.experiments.device.cuda_runs import findings_of_differences, on_device
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_on_cuda
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

_HELP = (
    "compare the kernels of the two devices (`returned` is from the CPU, `expected` from cuda); "
    "GL401 with --device cpu and with --device cuda says which of them is wrong"
)


def probe(subject: Subject) -> Outcome:
    """Compare outputs and gradients on cuda with those on the CPU."""
    reason = why_not_on_cuda(subject)
    if reason:
        return skipped(reason)
    problem = on_device(subject, "cpu")
    cotangents = {name: v.cpu() for name, v in subject.run.cotangents.items()}
    try:
        leaves, outputs = problem.linearize()
        gradients = problem.pull_from(outputs, leaves, cotangents)
    except OpRaised as raised:
        return skipped(f"on the CPU {raised.phase} raises: {raised.error}")
    finally:
        subject.problem.forward_calls += problem.forward_calls
        subject.problem.backward_calls += problem.backward_calls
    what = "differs between cpu and cuda"
    findings = findings_of_differences(subject, RULE, outputs, gradients, what, _HELP)
    return Outcome("fail" if findings else "pass", findings)
