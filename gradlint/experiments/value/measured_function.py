"""The function that gradients at special points are compared with, and how well it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from gradlint.experiments.baseline_comparison import share_of
from gradlint.experiments.finite.extremes import ExtremePoint
from gradlint.experiments.judged_dtype import float64_problem
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.one_sided_slopes import STEADY, OneSidedSlopes, SlopesAtPoint
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.products import rms, unit_roundoff, widened
from gradlint.numerics.verdict import SINGLE_PRECISION, InputJudgement
from gradlint.trace.op_io import OpRaised, Output
from gradlint.trace.problem import Problem, draws_random_numbers

#: Steps relative to the elements, by significand bits: slopes on one side need few digits.
STEPS = {53: 2.0**-24, 24: 2.0**-9}

#: Faults that are searched for are wrong in the first digits (heuristic), by significand bits.
TOLERATED = {53: 1e-3, 24: 2e-2}

#: Elements of a gradient are rounding below this many times the dtype's ε of its typical element at
#: the sample, and vanish below this many times its smallest normal number (heuristic).
ROUNDINGS, MOST_TINY = 16.0, 16.0

#: Forward computes something else than its twin where an output is off by more than this share of
#: the largest (heuristic: its first digit; float16 that has overflowed on the way is off by all).
LOST = 0.1


class MeasuredFunction:
    """The op, or its float64 twin, as it is measured at special points.

    Args:
        subject: the op at its sample.
        inputs: positions of those whose gradient is right there.

    Attributes:
        typical: values of the inputs at the sample.
        project: keeps directions of an input inside its domain, by position.
        units: of the last place, relative, in the dtype that the op computes in, by position of the
            input; 0 where that is the dtype of what is measured.
        step: relative to the elements; 0 where the function is known in too few digits.
        tolerated: share of a slope by which a gradient may be off.
    """

    def __init__(self, subject: Subject, inputs: Sequence[int]) -> None:
        self._subject = subject
        # Other random numbers may be drawn in float64, or its outputs may be as coarse there: then
        # the op itself is measured.
        own = draws_random_numbers(subject.problem) or _has_no_twin(subject)
        twin = subject.first_order.twin
        self._casts_to = None if own or twin is None else twin.function.stands_for
        self._wide = subject.problem if own else self._widened(subject.problem)
        self.typical = self._wide.values()
        outputs = [o.value for o in self._wide_outputs() if o.name in subject.run.cotangents]
        dtypes = [value.dtype for value in (*self.typical, *outputs)]
        bits = min(significand_bits(dtype) for dtype in dtypes)
        self._roundoff = max(unit_roundoff(dtype) for dtype in dtypes)
        # An op may take float64 and compute float32: its outputs step where theirs are smooth.
        noise = self._roundoff * max((item.kappa for item in _judged(subject, inputs)), default=1.0)
        if bits > 24 and noise > SINGLE_PRECISION:
            bits, self._roundoff = 24, max(noise, unit_roundoff(torch.float32))
        # Where digits cancel inside of forward, its outputs hold more than one rounding of theirs.
        self._roundoff = max(self._roundoff, noise)
        self._floors = [
            ROUNDINGS * torch.finfo(self._casts_to or v.dtype).eps * (0.0 if g is None else rms(g))
            + MOST_TINY * torch.finfo(v.dtype).tiny
            for v, g in zip(subject.problem.values(), subject.run.gradients or [], strict=True)
        ]
        self.project = subject.first_order_map.project or [None] * len(self.typical)
        self.step = STEPS.get(bits, 0.0)
        computed = [self._casts_to or v.dtype for v in subject.problem.values()]
        self.units = [
            0.0 if dtype == v.dtype else 2.0 * unit_roundoff(dtype)
            for dtype, v in zip(computed, self.typical, strict=True)
        ]
        self._cotangents = {name: widened(v) for name, v in subject.run.cotangents.items()}
        values = (*subject.problem.values(), *self._cotangents.values())
        low = (share_of(self._casts_to or v.dtype) for v in values)
        self.tolerated = max(TOLERATED.get(bits, 0.0), *low)

    def at(self, extreme: ExtremePoint) -> SlopesAtPoint | None:
        """The point of ``extreme``; None where its gradient can't be held against the function."""
        gradients = extreme.gradients
        if not extreme.finite or gradients is None:
            return None
        # Values of the twin are those of the low dtype; its outputs stand for the function.
        problem = self._problem_of(extreme)
        values = extreme.make()
        point = [v.to(t.dtype) for v, t in zip(values, self.typical, strict=True)]
        wides = [
            torch.zeros_like(widened(v)) if g is None else widened(g)
            for v, g in zip(point, gradients, strict=True)
        ]
        if any(g.shape != v.shape for g, v in zip(wides, point, strict=True)):
            return None
        base = self._base(extreme, problem, point)
        if base is None:
            return None
        return SlopesAtPoint(
            lambda values: self._outputs(problem, values),
            self._cotangents,
            base,
            point,
            wides,
            [rms(value) or 1.0 for value in self.typical],
            self._roundoff,
            [
                floor
                + share_of(self._casts_to or v.dtype) * (float(g.abs().max()) if g.numel() else 0.0)
                for floor, g, v in zip(self._floors, wides, values, strict=True)
            ],
            self.project,
        )

    def in_float64(self, extreme: ExtremePoint, at: SlopesAtPoint) -> SlopesAtPoint | None:
        """The point ``at`` with the gradients that the op returns there in float64; None where it
        is in float64 already, or has no other gradients there."""
        problem = self._problem_of(extreme)
        if problem is extreme.problem:
            return None
        before = problem.forward_calls, problem.backward_calls
        try:
            found = problem.pull(self._cotangents, at.values)
        except OpRaised:
            return None
        finally:
            self._subject.problem.forward_calls += problem.forward_calls - before[0]
            self._subject.problem.backward_calls += problem.backward_calls - before[1]
        gradients = [
            torch.zeros_like(g) if f is None else widened(f)
            for f, g in zip(found, at.gradients, strict=True)
        ]
        same = [f.shape for f in gradients] == [g.shape for g in at.gradients]
        return at.with_gradients(gradients) if same else None

    def slack(self, found: OneSidedSlopes, claimed: float) -> float:
        """By how much a gradient that predicts ``claimed`` may miss the slopes ``found``."""
        return self.tolerated * (found.size + abs(claimed)) + found.noise + found.floor

    def _problem_of(self, extreme: ExtremePoint) -> Problem:
        """The problem that is measured at ``extreme``."""
        if extreme.problem is self._subject.problem:
            return self._wide
        widen = self._wide is not self._subject.problem
        return self._widened(extreme.problem) if widen else extreme.problem

    def _base(
        self, extreme: ExtremePoint, problem: Problem, point: list[torch.Tensor]
    ) -> dict[str, torch.Tensor] | None:
        """The outputs at ``point``; None where they are not what forward computes."""
        if problem is extreme.problem:
            return {name: widened(extreme.outputs[name]) for name in self._cotangents}
        base = self._outputs(problem, point)
        # Else its gradient is that of what forward computes, in its own dtype.
        return None if base is None or _lost_digits(extreme.outputs, base) else base

    def _widened(self, problem: Problem) -> Problem:
        """``problem`` in float64, without casts to 16 bits where its twin is."""
        exact = problem.exact() if self._casts_to is not None else None
        return exact[0] if exact is not None else float64_problem(self._subject, problem)

    def _wide_outputs(self) -> Sequence[Output]:
        if self._wide is self._subject.problem:
            return self._subject.run.outputs
        return self._wide.forward()

    def _outputs(
        self, problem: Problem, values: list[torch.Tensor]
    ) -> dict[str, torch.Tensor] | None:
        try:
            found = {item.name: widened(item.value) for item in problem.forward(values)}
        except OpRaised:
            return None
        for name, v in self._cotangents.items():
            if name not in found or found[name].shape != v.shape:
                return None
        return found


def _judged(subject: Subject, inputs: Sequence[int]) -> list[InputJudgement]:
    """What was measured at the sample, of the function that is measured here too."""
    decision = subject.first_order.twin or subject.first_order
    return [item for item in decision.judgement.inputs if item.index in inputs]


def _has_no_twin(subject: Subject) -> bool:
    """Whether what the op computes in float64 was found to say nothing of what it computes here."""
    compared = subject.first_order.compared.values()
    return bool(compared) and not any(found.compared for found in compared)


def _lost_digits(outputs: Mapping[str, torch.Tensor], twin: Mapping[str, torch.Tensor]) -> bool:
    """Whether ``outputs`` are not those of the ``twin``, rounded: an intermediate value overflowed,
    or all digits cancelled."""
    for name, wide in twin.items():
        gap = (widened(outputs[name]) - wide).abs()
        finite = wide.abs().nan_to_num(0.0, 0.0, 0.0)
        if wide.numel() and bool((gap > LOST * finite.max()).any()):
            return True
    return False


def is_steady(found: OneSidedSlopes, again: OneSidedSlopes | None) -> bool:
    """Whether slopes over a wider step are the same on both sides: no jump, no root."""
    if again is None:
        return False
    gap = max(abs(found.right - again.right), abs(found.left - again.left))
    return gap <= STEADY * found.size + found.noise
