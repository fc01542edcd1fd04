"""Memory error reported by a sanitizer.

What it finds
-------------
`--sanitizer memcheck`, `racecheck`, `initcheck` or `synccheck` runs the check under NVIDIA's
compute-sanitizer, with PyTorch's caching allocator off, so that every tensor is an allocation of
its own. Everything the tool reports about a kernel is a finding: reads and writes that are out of
bounds or misaligned (memcheck), threads of a block that race for shared memory (racecheck), reads
of memory that was never written (initcheck), barriers that not all threads reach (synccheck). The
tool watches all calls that the selected rules make, in all their layouts and sizes. Needs a GPU and
the CUDA toolkit. Cost: the check, several times slower.

Why it matters
--------------
The caching allocator hands out memory with room around it, where a read out of bounds still finds
something. Results are right for months, until a neighbour's NaN is read. A race may show on one
GPU, once in a thousand runs.

Bad
---
```python
import torch

if torch.cuda.is_available():
    import triton
    import triton.language as tl

    @triton.jit
    def double(x, y, count, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + i, 2 * tl.load(x + i))  # also behind the last element

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return Op.doubled(x)

    @staticmethod
    def backward(ctx, grad_output):
        return Op.doubled(grad_output)

    @staticmethod
    def doubled(x):
        if not x.is_cuda:
            return 2 * x
        x = x.contiguous()
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

    @staticmethod
    def sample_inputs():
        return torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
```

Good
----
```python
import torch

if torch.cuda.is_available():
    import triton
    import triton.language as tl

    @triton.jit
    def double(x, y, count, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = i < count
        tl.store(y + i, 2 * tl.load(x + i, mask=inside), mask=inside)

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if not x.is_cuda:
            return 2 * x
        x = x.contiguous()
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return Op.apply(grad_output)

    @staticmethod
    def sample_inputs():
        return torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
```

How it looks
------------
```text
mylib/double.cu:12:1  GL805  memcheck: Invalid __global__ write of size 4 bytes in double(float *)
  thread     (15,0,0)
  block      (0,0,0)
  address    0x7f2a1e00003c is out of bounds and is 1 bytes after the nearest allocation at …
  help       mask or bound the index: the last block reaches beyond the end of the tensor
```

References
----------
- compute-sanitizer: https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html
- The caching allocator hides errors:
  https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-memory-management
"""

from __future__ import annotations

from typing import Any

from gradlint.experiments.device.sanitizer_report import DeviceError
from gradlint.experiments.loading.process_findings import process_finding
from gradlint.model.report import Finding
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

#: The next step, by how the tool's words begin.
_HELP = {
    "Invalid": "mask or bound the index: the last block reaches beyond the end of the tensor; "
    "an address that is misaligned comes from a view at an odd offset, read as a vector",
    "Uninitialized": "write every element before it is read: torch.empty holds whatever was there "
    "before",
    "Race": "put __syncthreads() between the accesses, in a place that all threads reach",
    "Barrier": "every thread of the block must reach the barrier: no return or branch before it",
}

_LINE_HELP = "; compile with nvcc -lineinfo to see the line"


def make_finding(
    target: str, tool: str, error: DeviceError, settings: Settings, **place: Any
) -> Finding:
    """The finding of one error that a sanitizer reported of ``target``.

    Args:
        tool: "memcheck", "racecheck", "initcheck" or "synccheck".
        place: location and excerpt of the line of the kernel, or of the operator.
    """
    where = f" in {error.kernel}" if error.kernel else ""
    times = f" ({error.count} times)" if error.count > 1 else ""
    advice = next((text for word, text in _HELP.items() if error.kind.startswith(word)), "")
    launched = error.launched if error.launched != error.kernel else ""
    finding = process_finding(
        RULE,
        target,
        f"{tool}: {error.kind}{where}{times}",
        settings,
        evidence={
            "tool": tool,
            "kind": error.kind,
            "kernel": error.kernel,
            "launched": launched,
            "place": f"{error.file}:{error.line}" if error.file else "",
            "thread": error.thread,
            "block": error.block,
            "address": error.address,
            "other_access": list(error.others),
            "count": error.count,
        },
        help=(advice or "see the tool's manual (gradlint explain GL805)")
        + ("" if error.file else _LINE_HELP),
        **place,
    )
    if error.warning:
        finding.severity = "warning"
    return finding
