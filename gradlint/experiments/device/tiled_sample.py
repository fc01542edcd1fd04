"""The sample, repeated along its first axis until it is huge.

Where every slice along the first axis is computed independently, repeating the inputs repeats the
outputs and gradients. A few repetitions show whether that is so; then enough of them pass the
largest 32-bit index, and every block must still be the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch

from gradlint.base.clock import had_seconds
from gradlint.experiments.baseline_comparison import share_of
from gradlint.experiments.subject import Subject
from gradlint.model.sample import map_tensors
from gradlint.numerics.products import widened
from gradlint.trace.op_io import OpRaised

#: Elements beyond which a 32-bit index overflows.
INDEX_LIMIT = 2**31

#: Repetitions that show whether slices are computed independently, and repetitions that are timed
#: to predict the time of a huge call.
FEW, MANY = 3, 4096

#: Bytes held at the peak, in units of the repeated inputs and outputs (leaf, output, cotangent,
#: gradient, and a temporary of each).
PEAK = 3.0

#: Seconds that the huge call may take by what :data:`MANY` repetitions took.
LONGEST_S = 20.0

#: Elements that are compared at once.
CHUNK = 2**26


@dataclass
class WrongBlock:
    """The first block that differs from the others.

    Args:
        what: "output" or "gradient"; ``name`` of the output or input.
        number: of the block; ``of`` how many.
        element: flat index of its first wrong element in the huge tensor.
        returned, expected: its values.
    """

    what: str
    name: str
    number: int
    of: int
    element: int
    returned: float
    expected: float


@dataclass
class TiledRun:
    """The result: ``reason`` why it could not be tried, ``raised`` what the huge call raised,
    ``wrong`` what differs there, ``elements`` of its largest tensor."""

    reason: str = ""
    raised: OpRaised | None = None
    wrong: list[WrongBlock] = field(default_factory=list)
    elements: int = 0


def run_beyond_limit(subject: Subject, *, limit: int = INDEX_LIMIT, free_bytes: int) -> TiledRun:
    """Run the op of ``subject`` on more than ``limit`` elements.

    Args:
        free_bytes: memory that may be used.
    """
    grown = _grown_positions(subject)
    if not grown:
        return TiledRun(reason="no input has a first axis to repeat")
    values, outputs = subject.problem.values(), [o.value for o in subject.run.outputs]
    largest = max(t.numel() for t in (*(values[k] for k in grown), *outputs))
    repeats = limit // max(largest, 1) + 2
    tried = _run_tiled(subject, FEW)
    if tried.raised is not None or tried.wrong:
        return TiledRun(reason="slices along the first axis are not computed by themselves")
    bytes_each = sum(t.numel() * t.element_size() for t in (*values, *outputs))
    needed = PEAK * repeats * bytes_each
    if needed > free_bytes:
        return TiledRun(
            reason=f"needs about {needed / 2**30:.0f} GiB of memory, "
            f"{free_bytes / 2**30:.0f} GiB are free"
        )
    many = min(MANY, max(FEW, repeats // 4))
    started = had_seconds()
    tried = _run_tiled(subject, many)
    call_s = (had_seconds() - started) * repeats / many
    if tried.raised is not None or tried.wrong:
        return TiledRun(reason=f"already {many} repetitions differ, before an index can overflow")
    if call_s > LONGEST_S:
        return TiledRun(reason=f"would take about {call_s:.0f} s")
    return replace(_run_tiled(subject, repeats), elements=repeats * largest)


def _grown_positions(subject: Subject) -> list[int]:
    values = subject.problem.values()
    if not values or not values[0].dim() or any(v.layout != torch.strided for v in values):
        return []
    size = values[0].shape[0]
    return [k for k, v in enumerate(values) if v.dim() and v.shape[0] == size] if size else []


def _run_tiled(subject: Subject, repeats: int) -> TiledRun:
    """The op on the sample repeated, compared block by block with the sample's own results."""
    run, values = subject.run, subject.problem.values()
    size = values[0].shape[0]

    def tile(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.dim() or tensor.shape[0] != size or tensor.layout != torch.strided:
            return tensor
        found = tensor.detach().repeat(repeats, *(1,) * (tensor.dim() - 1))
        return found.requires_grad_(tensor.requires_grad)

    sample = subject.sample
    args, kwargs = map_tensors((sample.args, sample.kwargs), tile)
    problem = subject.problem.at(replace(sample, args=args, kwargs=kwargs))
    leaves = [value.requires_grad_() for value in problem.values()]
    found = TiledRun()
    try:
        outputs = problem.connect(leaves)
        before = {o.name: o.value.detach() for o in run.outputs}
        chosen = [o for o in outputs if o.name in run.cotangents and o.differentiable]
        for item in chosen:
            block = _first_wrong_block("output", item.name, item.value, before[item.name], repeats)
            found.wrong += [block] if block else []
        if found.wrong or not chosen:
            return found
        cotangents = [
            run.cotangents[o.name].repeat(repeats, *(1,) * (o.value.dim() - 1)) for o in chosen
        ]
        gradients = problem.backward(chosen, leaves, cotangents, as_given=True)
    except OpRaised as raised:
        found.raised = raised
        return found
    finally:
        subject.problem.forward_calls += 1
        subject.problem.backward_calls += 1
    for position, gradient in enumerate(gradients):
        expected = (run.gradients or [])[position]
        if gradient is None or expected is None or gradient.shape == values[position].shape:
            continue  # gradients of what is not repeated are sums
        name = problem.inputs[position].name
        block = _first_wrong_block("gradient", name, gradient, expected, repeats)
        found.wrong += [block] if block else []
    return found


def _first_wrong_block(
    what: str, name: str, got: torch.Tensor, expected: torch.Tensor, repeats: int
) -> WrongBlock | None:
    """The first block of ``got`` that is not ``expected``."""
    got, expected = got.detach(), expected.detach()
    if not expected.dim() or got.shape[0] != repeats * expected.shape[0]:
        return WrongBlock(what, name, 0, repeats, 0, math.nan, math.nan)
    if got.shape[1:] != expected.shape[1:] or not expected.numel():
        return WrongBlock(what, name, 0, repeats, 0, math.nan, math.nan)
    blocks = got.reshape(repeats, -1)
    wide = widened(expected).reshape(-1)
    allowed = share_of(expected.dtype) * float(wide.abs().max())
    step = max(1, CHUNK // wide.numel())
    for first in range(0, repeats, step):
        part = widened(blocks[first : first + step])
        bad = ~((part - wide).abs() <= allowed)
        if bool(bad.any()):
            row, column = (int(k) for k in bad.nonzero()[0])
            return WrongBlock(
                what,
                name,
                first + row,
                repeats,
                (first + row) * wide.numel() + column,
                float(part[row, column]),
                float(wide[column]),
            )
    return None
