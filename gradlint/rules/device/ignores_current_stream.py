"""Ignores the current stream.

What it finds
-------------
The op runs on a side stream whose inputs arrive late: they hold NaN until a copy, queued behind a
sleeping kernel on that stream, fills them. Outputs or gradients that differ from the usual ones
show that a kernel was launched on another stream and did not wait. An op that waits for the whole
device hides this, and is reported as inconclusive. Needs a GPU. Cost: 2 forward and 2 backward
calls, and the sleep (at least 0.05 s).

Why it matters
--------------
Data loaders, pipelines and CUDA graphs use streams of their own. A kernel on the default stream
races with them: results are right on an idle GPU, and occasionally wrong under load.

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

import time
from dataclasses import dataclass, field

import torch

from gradlint.experiments.device.cuda_runs import findings_of_differences
from gradlint.experiments.outcomes import inconclusive, skipped
from gradlint.experiments.preconditions import why_not_on_cuda
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import OpRaised, Output

RULE = rule_of(__name__)

#: The sleep in seconds, at least and at most, and in units of what launching a call takes.
SHORTEST_S, LONGEST_S, TIMES = 0.05, 2.0, 5.0

#: Cycles a second that ``torch.cuda._sleep`` counts: the clocks of GPUs lie between 1 and 2 GHz.
CYCLES = 2.0e9

_HELP = (
    "launch every kernel on the current stream of the tensors' device "
    "(at::cuda::getCurrentCUDAStream(); kernel<<<grid, block>>> alone takes stream 0), and let "
    "libraries know it (cublasSetStream)"
)


def probe(subject: Subject) -> Outcome:
    """Run the op on a side stream on which its inputs come late."""
    reason = why_not_on_cuda(subject, may_draw=True)
    if reason:
        return skipped(reason)
    found = on_side_stream(subject)
    if found.raised is not None:
        note = f"on a side stream {found.raised.phase} raises: {found.raised.error}"
        return inconclusive(note)
    what = "is wrong on a side stream"
    findings = findings_of_differences(subject, RULE, found.outputs, found.gradients, what, _HELP)
    # Where forward read NaN, its gradients hold that too.
    findings = [finding for finding in findings if finding.output] or findings
    if findings:
        return Outcome("fail", findings)
    if not found.forward_queued:
        return inconclusive("forward waits for the device, which hides a wrong stream")
    if not found.backward_queued:
        return Outcome("pass", note="backward waits for the device: only forward was judged")
    return Outcome("pass")


@dataclass
class SideRun:
    """One run on a side stream.

    Args:
        outputs, gradients: what the op returned.
        forward_queued, backward_queued: whether the side stream was still asleep when the call
            came back; if not, the op waited for the device, and a wrong stream could not show.
        raised: what the op raised.
    """

    outputs: list[Output] = field(default_factory=list)
    gradients: list[torch.Tensor | None] = field(default_factory=list)
    forward_queued: bool = False
    backward_queued: bool = False
    raised: OpRaised | None = None


def on_side_stream(subject: Subject) -> SideRun:
    """Run the op of ``subject``, whose inputs are on a GPU, on a side stream of that GPU.

    Inputs and cotangents hold NaN until their values are copied into them, on the side stream and
    behind a kernel that sleeps. Kernels that are launched on the current stream wait in line; those
    launched on another stream run at once, and read NaN.
    """
    problem, run = subject.problem, subject.run
    values = problem.values()
    device = next(value.device for value in values if value.device.type == "cuda")
    started = time.perf_counter()
    problem.pull(run.cotangents)  # kernels are compiled and caches filled now
    torch.cuda.synchronize(device)
    sleep_s = min(LONGEST_S, max(SHORTEST_S, TIMES * (time.perf_counter() - started)))
    leaves = [_empty(value) for value in values]
    cotangents = {name: _empty(v) for name, v in run.cotangents.items()}
    found = SideRun()
    side: torch.cuda.Stream = torch.cuda.Stream(device)
    torch.cuda.synchronize(device)
    try:
        with torch.cuda.device(device), torch.cuda.stream(side):
            torch.cuda._sleep(int(sleep_s * CYCLES))
            with torch.no_grad():
                for leaf, value in zip(leaves, values, strict=True):
                    leaf.copy_(value, non_blocking=True)
                for name, v in run.cotangents.items():
                    cotangents[name].copy_(v, non_blocking=True)
            for leaf in leaves:
                leaf.requires_grad_()
            outputs = problem.connect(leaves)
            found.forward_queued = not side.query()
            found.gradients = problem.pull_from(outputs, leaves, cotangents, as_given=True)
            found.backward_queued = not side.query()
            found.outputs = outputs
    except OpRaised as raised:
        found.raised = raised
    torch.cuda.synchronize(device)
    return found


def _empty(value: torch.Tensor) -> torch.Tensor:
    """Memory like that of ``value`` that holds NaN."""
    return torch.full_like(value, float("nan")).detach()
