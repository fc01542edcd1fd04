"""The op on a side stream, behind a kernel that sleeps.

Inputs and cotangents hold NaN until, on the side stream and behind the sleep, their values are
copied into them. Kernels that are launched on the current stream wait in line; those launched on
another one run at once, and read NaN.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from gradlint.trace._problem import OpRaised

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject
    from gradlint.trace._problem import Output

#: The sleep in seconds, at least and at most, and in units of what launching a call takes.
SHORTEST_S, LONGEST_S, TIMES = 0.05, 2.0, 5.0

#: Cycles a second that ``torch.cuda._sleep`` counts: the clocks of GPUs lie between 1 and 2 GHz.
CYCLES = 2.0e9


@dataclass
class SideRun:
    """What came of it.

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
    """Run the op of ``subject``, whose inputs are on a GPU, on a side stream of that GPU."""
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
            chosen = [o for o in outputs if o.name in cotangents and o.differentiable]
            found.gradients = problem.backward(
                chosen, leaves, [cotangents[o.name] for o in chosen], as_given=True
            )
            found.backward_queued = not side.query()
            found.outputs = outputs
    except OpRaised as raised:
        found.raised = raised
    torch.cuda.synchronize(device)
    return found


def _empty(value: torch.Tensor) -> torch.Tensor:
    """Memory like that of ``value`` that holds NaN."""
    return torch.full_like(value, float("nan")).detach()
