"""Index overflow on large tensors.

What it finds
-------------
The sample is repeated along its first axis until a tensor has more than 2³¹ elements, provided that
each slice along that axis is computed independently (three repetitions show that). Every block of
the outputs and gradients must then equal the sample's own. Blocks behind the 2³¹st element that do
not, and crashes there, reveal a 32-bit index. Needs a GPU with enough free memory (about three
times all huge tensors); left out where it would take longer than 20 s. Cost: 2 small and 1 huge
forward and backward call.

On the CPU, where Triton interprets kernels, the sample's values are laid so far apart that offsets
between them pass 2³¹ elements (this takes addresses, and 48 MiB of memory for each tensor). A
product of a row number and a stride in 32 bits wraps around there; a count of elements beyond 2³¹
is left to a GPU. Cost: 2 forward and backward calls.

Why it matters
--------------
``int i = blockIdx.x * blockDim.x + threadIdx.x`` and ``tl.program_id(0) * stride`` wrap around.
Long sequences and large batches reach 2³¹ elements, where results are garbage or the process dies.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = x.sin()
        if x.numel() > 2**31:
            y.view(-1)[2**31:] = 0
        return y

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
mylib/ops.py:4:1  GL806  `output` is wrong from element 2147483648 on, in a tensor of 2147483670
  help       compute indices in 64 bits: int64_t in CUDA, .to(tl.int64) in Triton
```

References
----------
- Reports: triton-lang/triton#832, fla-org/flash-linear-attention#1082, databricks/megablocks#186
"""

from __future__ import annotations

import torch

from gradlint.base.text import error_line
from gradlint.experiments.baseline_comparison import Difference
from gradlint.experiments.device.far_apart import FarRun, run_far_apart
from gradlint.experiments.device.interpreted_kernels import triton_interprets
from gradlint.experiments.device.tiled_sample import TiledRun, WrongBlock, run_beyond_limit
from gradlint.experiments.outcomes import inconclusive, skipped
from gradlint.experiments.preconditions import why_layouts_not_comparable, why_not_on_cuda
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

_HELP = (
    "compute indices in 64 bits: int64_t in CUDA (also for blockIdx.x * blockDim.x), "
    ".to(tl.int64) for program_id and loaded indices in Triton; or refuse such sizes in forward"
)


def probe(subject: Subject) -> Outcome:
    """Run the op on more than 2³¹ elements, or with offsets beyond 2³¹."""
    reason = why_not_on_cuda(subject)
    if reason and triton_interprets():
        reason = why_layouts_not_comparable(subject)
        return skipped(reason) if reason else judged_far_apart(subject, run_far_apart(subject))
    if reason:
        return skipped(reason)

    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    found = run_beyond_limit(subject, free_bytes=free)
    torch.cuda.empty_cache()
    return judged(subject, found)


def judged_far_apart(subject: Subject, found: FarRun) -> Outcome:
    """The outcome of a call with values far apart."""
    if found.reason:
        return skipped(found.reason)
    if found.loops and (found.outputs or found.gradients):
        return inconclusive(
            f"it is wrong where offsets pass 2³¹, and `{found.loops[0]}` has a loop: Triton's "
            "interpreter counts it in 32 bits, a GPU may count it in 64"
        )
    findings = [_far_finding(subject, item, output=True) for item in found.outputs[:1]]
    findings = findings or [_far_finding(subject, item, output=False) for item in found.gradients]
    note = f"offsets up to {found.offset}"
    return Outcome("fail" if findings else "pass", findings, note=note)


def _far_finding(subject: Subject, found: Difference, *, output: bool) -> Finding:
    what = f"`{found.name}`" if output else f"gradient for `{found.name}`"
    return subject.finding(
        RULE,
        f"{what} is wrong where the inputs' rows are so far apart that offsets pass 2³¹",
        output=found.name if output else None,
        input=None if output else found.name,
        index=found.index,
        evidence=found.evidence(),
        help=_HELP,
    )


def judged(subject: Subject, found: TiledRun) -> Outcome:
    """The outcome of a huge call."""
    if found.reason:
        return skipped(found.reason)
    if found.raised is not None:
        line = error_line(found.raised.error)
        if isinstance(found.raised.error, torch.OutOfMemoryError):
            return skipped(f"out of memory: {line}")
        crashed = "CUDA error" in line
        finding = subject.finding(
            RULE,
            f"{found.raised.phase} raises on {found.elements} elements: {line}",
            grounds=subject.grounds(silent=False, refused=not crashed),
            evidence={"error": line, "elements": found.elements},
            help=_HELP,
        )
        return Outcome("fail" if crashed else "pass", [finding])
    findings = [_finding(subject, found, block) for block in found.wrong]
    note = f"{found.elements} elements"
    return Outcome("fail" if findings else "pass", findings, note=note)


def _finding(subject: Subject, found: TiledRun, block: WrongBlock) -> Finding:
    output = block.what == "output"
    what = f"`{block.name}`" if output else f"gradient for `{block.name}`"
    return subject.finding(
        RULE,
        f"{what} is wrong from element {block.element} on, in a call with {found.elements} "
        "elements",
        output=block.name if output else None,
        input=None if output else block.name,
        evidence={
            "elements": [
                {
                    "index": [block.element],
                    "returned": block.returned,
                    "expected": block.expected,
                    "error": abs(block.returned - block.expected),
                }
            ],
            "block": f"{block.number} of {block.of}",
        },
        help=_HELP,
    )
