"""Ignores the current stream.

What it finds
-------------
The op runs on a side stream whose inputs are not there yet: they are NaN until a copy that waits
behind a sleeping kernel on that stream. Outputs or gradients other than usual show that a kernel
was launched on another stream, and did not wait. An op that waits for the whole device hides this,
and is reported as inconclusive. Needs a GPU. Cost: 2 forward and 2 backward calls, and the sleep
(at least 0.05 s).

Why it matters
--------------
Data loaders, pipelines and CUDA graphs run on streams of their own. A kernel on the default stream
races with them: results are right on an idle GPU, and wrong, rarely, under load.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        if not x.is_cuda:
            return x.sin()
        with torch.cuda.stream(torch.cuda.default_stream()):
            return x.sin()

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
mylib/ops.py:4:1  GL803  `output` is wrong on a side stream (15 of 15 elements)
             index      returned     expected       error
             [0, 2]          nan    +0.812403         inf
  help       launch on at::cuda::getCurrentCUDAStream(); kernel<<<grid, block>>> takes stream 0
```

References
----------
- CUDA streams in PyTorch: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams
- Reports: open-mmlab/mmdetection#1326, linkedin/Liger-Kernel#1303, openvdb/fvdb-core#587
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.rules._rule import Outcome, Rule

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject

_HELP = (
    "launch every kernel on the current stream of the tensors' device "
    "(at::cuda::getCurrentCUDAStream(); kernel<<<grid, block>>> alone takes stream 0), and let "
    "libraries know it (cublasSetStream)"
)


def probe(subject: Subject) -> Outcome:
    """Run the op on a side stream on which its inputs come late."""
    from gradlint.rules.device._on_cuda import told, unfit
    from gradlint.rules.device._side_stream import on_side_stream

    reason = unfit(subject, drawing=True)
    if reason:
        return Outcome("skipped", note=reason)
    found = on_side_stream(subject)
    if found.raised is not None:
        note = f"on a side stream {found.raised.phase} raises: {found.raised.error}"
        return Outcome("inconclusive", note=note)
    what = "is wrong on a side stream"
    findings = told(subject, RULE, found.outputs, found.gradients, what, _HELP)
    # Where forward read NaN, its gradients hold that too.
    findings = [finding for finding in findings if finding.output] or findings
    if findings:
        return Outcome("fail", findings)
    if not found.forward_queued:
        return Outcome("inconclusive", note="forward waits for the device: no stream can be wrong")
    if not found.backward_queued:
        return Outcome("pass", note="backward waits for the device: only forward was looked at")
    return Outcome("pass")


RULE = Rule(
    code="GL803",
    name="ignores_current_stream",
    severity="error",
    summary="a kernel is launched on another stream than the current one",
    module=__name__,
    probe=probe,
)
