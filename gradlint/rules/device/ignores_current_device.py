"""Ignores the current device.

What it finds
-------------
The op runs on tensors of one GPU while another GPU is current, and raises, or returns different
outputs or gradients than usual. Needs two GPUs. Cost: 1 forward and 1 backward call.

Why it matters
--------------
Kernels are launched on the current device, whatever device their arguments are on. With a model on
``cuda:1`` they read and write memory of another GPU: zeros, garbage or a crash, and only for people
with several GPUs.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty(x.shape, dtype=x.dtype, device="cuda" if x.is_cuda else "cpu")
        return out.copy_(x).sin_()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
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
        return torch.empty_like(x).copy_(x).sin_()

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
mylib/ops.py:4:1  GL804  with cuda:1 current and all tensors on cuda:0, `output` is on cuda:1
  help       use c10::cuda::CUDAGuard (or torch.cuda.device_of) for the device of the tensors
```

References
----------
- Reports: open-mmlab/mmdetection#1326, linkedin/Liger-Kernel#1303
"""

from __future__ import annotations

import torch

from gradlint.base.text import error_line
from gradlint.experiments.device.cuda_runs import findings_of_differences
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_on_cuda
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

_HELP = (
    "make the device of the tensors current before a launch (c10::cuda::CUDAGuard, "
    "torch.cuda.device_of), and allocate with it: empty_like, new_empty, device=x.device"
)


def probe(subject: Subject) -> Outcome:
    """Run the op while the current GPU is not that of its tensors."""
    reason = why_not_on_cuda(subject)
    if reason:
        return skipped(reason)
    if torch.cuda.device_count() < 2:
        return skipped("needs two GPUs: only one is available")
    own = next(v.device for v in subject.problem.values() if v.device.type == "cuda")
    other = next(k for k in range(torch.cuda.device_count()) if k != own.index)
    words = f"with cuda:{other} current and all tensors on {own}"
    problem, cotangents = subject.problem, subject.run.cotangents
    try:
        with torch.cuda.device(other):
            leaves, outputs = problem.linearize()
            usual = {o.name: o.value.device for o in subject.run.outputs}
            astray = next((o for o in outputs if o.value.device != usual.get(o.name)), None)
            gradients = []
            if astray is None:
                gradients = problem.pull_from(outputs, leaves, cotangents)
            torch.cuda.synchronize(own)
    except OpRaised as raised:
        line = error_line(raised.error)
        message = f"{words}, {raised.phase} raises: {line}"
        finding = subject.finding(RULE, message, evidence={"error": line}, help=_HELP)
        return Outcome("fail", [finding])
    if astray is not None:
        message = f"{words}, `{astray.name}` is on {astray.value.device}"
        finding = subject.finding(RULE, message, output=astray.name, help=_HELP)
        return Outcome("fail", [finding])
    findings = findings_of_differences(
        subject, RULE, outputs, gradients, f"is wrong {words}", _HELP
    )
    return Outcome("fail" if findings else "pass", findings)
