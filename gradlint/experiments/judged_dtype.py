"""The dtype in which an op is judged: float64 wherever it accepts that and computes in it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.experiments.subject import Subject
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: Tried in this order where an op refuses float64.
LOWER = (torch.float32, torch.bfloat16, torch.float16)

#: Significand bits of the dtypes that ops cast to inside.
BITS = {torch.bfloat16: 8, torch.float16: 11}

#: Inputs are moved by up to this share of their size before they are rounded, so that values
#: that happen to be short (ones, halves) prove nothing (heuristic).
MOVE = 0.1

#: Share of the outputs that must change when every input moves to the next number of the dtype, by
#: the size of the inputs: those of the sample, and an eighth of them. Steps of a fixed width
#: (rounding to integers, x + 1e4 in float32) hardly show in the latter and are not casts.
CHANGED = {1.0: 0.3, 0.125: 0.1}

#: Inputs tried at each size.
TRIALS = 4

#: Elements needed to say that all of them were rounded to float32, and the share of them that must
#: use more than this many of its 24 bits: integers and halves are numbers of every dtype
#: (heuristic; of numbers rounded to float32, fifteen in sixteen need more than 20).
FEWEST, FULL, BITS_NEEDED = 6, 0.5, 20


def accepted(op: Op, sample: Sample, settings: Settings) -> tuple[Sample, str]:
    """``sample`` in the first dtype that the op takes, and a note where that is not float64.

    An op that accepts float64 and casts it to 16 bits inside is a staircase in float64; it is
    judged in the dtype that it computes in, with steps that suit that.
    """
    tensors = [tensor for _, tensor in sample.named_tensors(op.signature)]
    device = str(tensors[0].device) if tensors else "cpu"
    if op.module is not None or not any(tensor.dtype == torch.float64 for tensor in tensors):
        return sample, ""
    chosen, note = sample, ""
    if not _runs(op, sample, settings):
        for dtype in LOWER:
            lower = sample.converted(dtype, device)
            if _runs(op, lower, settings):
                name = str(dtype).removeprefix("torch.")
                chosen, note = lower, f"the op refuses float64; judged in {name}"
                break
        else:
            return sample, ""
    inside, why = as_computed(op, chosen, settings)
    return inside, why or note


def as_computed(op: Op, sample: Sample, settings: Settings) -> tuple[Sample, str]:
    """``sample`` in the 16-bit dtype to which the op casts it, with a note, where the op accepts
    that dtype; otherwise unchanged."""
    inside = None if op.module is not None else computes_in(_problem(op, sample, settings))
    if inside is None:
        return sample, ""
    device = str(next(tensor.device for _, tensor in sample.named_tensors(op.signature)))
    lower = sample.converted(inside, device)
    if not _runs(op, lower, settings):
        return sample, ""
    name = str(inside).removeprefix("torch.")
    return lower, f"the op casts its inputs to {name}; judged in {name}"


def computes_in(problem: Problem) -> torch.dtype | None:
    """The 16-bit dtype to which forward casts all of its differentiable inputs, or None.

    Rounding the inputs to that dtype first changes no bit of the outputs, and moving them to its
    next numbers changes many.
    """
    values = problem.values()
    wide = (torch.float64, torch.float32)
    if not values or any(value.dtype not in wide for value in values):
        return None
    if any(value.layout != torch.strided for value in values):
        return None
    generator = torch.Generator().manual_seed(problem.seed)
    try:
        for dtype, bits in BITS.items():
            if all(
                _casts(problem, values, share, dtype, bits, generator) >= least
                for share, least in CHANGED.items()
            ):
                return dtype
    except OpRaised:
        pass
    return None


def _casts(
    problem: Problem,
    values: Sequence[torch.Tensor],
    share: float,
    dtype: torch.dtype,
    bits: int,
    generator: torch.Generator,
) -> float:
    """Share of the outputs that change when the inputs, about ``share`` of their size, move to the
    next numbers of ``dtype``; 0 where rounding them to ``dtype`` changes anything."""
    changes = []
    for _ in range(TRIALS):
        moved = []
        for value in values:
            drawn = torch.rand(value.shape, generator=generator, dtype=torch.float64)
            moved.append(value * (share * (1.0 + MOVE * drawn)).to(value))
        here = _outputs(problem, moved)
        if _changed(here, _outputs(problem, [v.to(dtype).to(v.dtype) for v in moved])) > 0.0:
            return 0.0
        nexts = [value * (1.0 + 2.0 ** (1 - bits)) for value in moved]
        changes.append(_changed(here, _outputs(problem, nexts)))
    if share < 1.0 and any(value.dtype == torch.float32 for value in values):
        return min(changes)  # float32 has staircases of its own, hardly finer than float16's
    return sum(changes) / TRIALS


def rounded_to_float32(tensor: torch.Tensor) -> bool:
    """Whether every element of a float64 tensor was rounded to float32."""
    found = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    if found.dtype != torch.float64 or found.layout != torch.strided:
        return False
    found = found[torch.isfinite(found) & (found != 0)]
    significand, _ = torch.frexp(found)
    short = [torch.frac(significand * 2.0**bits) == 0 for bits in (24, BITS_NEEDED)]
    return (
        found.numel() >= FEWEST
        and bool(short[0].all())
        and int((~short[1]).sum()) >= (FULL * found.numel())
    )


def outputs_in_float32(problem: Problem) -> list[str]:
    """Names of the float64 outputs that have float32 precision at inputs that do not."""
    generator = torch.Generator().manual_seed(problem.seed)
    moved = []
    for value in problem.values():
        drawn = torch.rand(value.shape, generator=generator, dtype=torch.float64)
        moved.append(value * (1.0 + MOVE * drawn).to(value))
    try:
        outputs = problem.forward(moved)
    except OpRaised:
        return []
    return [item.name for item in outputs if rounded_to_float32(item.value)]


def _problem(op: Op, sample: Sample, settings: Settings) -> Problem:
    """These calls come before anyone has looked for what forward leaves behind, such as another
    default device, under which what is made here would have no values."""
    found = Problem(op, sample, seed=settings.seed)
    found.preserve_state = True
    return found


def _runs(op: Op, sample: Sample, settings: Settings) -> bool:
    try:
        _problem(op, sample, settings).forward()
    except OpRaised:
        return False
    return True


def _outputs(problem: Problem, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [item.value for item in problem.forward(values) if item.value.is_floating_point()]


def _changed(here: Sequence[torch.Tensor], there: Sequence[torch.Tensor]) -> float:
    """Share of the elements that differ; 1 where shapes do, or where there are none."""
    if [a.shape for a in here] != [b.shape for b in there]:
        return 1.0
    total = sum(a.numel() for a in here)
    if not total or any(a.layout != torch.strided or not bool(a.isfinite().all()) for a in here):
        return 1.0
    return sum(int((a != b).sum()) for a, b in zip(here, there, strict=True)) / total


def float64_problem(subject: Subject, problem: Problem | None = None) -> Problem:
    """``problem`` (default the subject's own) in float64, or unchanged where the op does not
    accept that."""
    problem = problem or subject.problem
    if all(item.value.dtype in (torch.float64, torch.complex128) for item in problem.inputs):
        return problem
    if subject.op.module is not None or not problem.inputs:
        return problem
    device = str(problem.inputs[0].value.device)
    wide = problem.at(problem.sample.converted(torch.float64, device))
    try:
        outputs = wide.forward()
    except OpRaised:
        return problem
    before = [(output.name, output.value.shape) for output in subject.run.outputs]
    same = before == [(output.name, output.value.shape) for output in outputs]
    return wide if same else problem
