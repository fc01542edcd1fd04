"""Further samples: many cheap looks at what the first sample may hide.

At each, forward and backward run once, and one direction that moves all inputs at once is measured.
Only where the gradient looks wrong there, or backward raises, the rules of first order run too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from gradlint.base.clock import had_seconds
from gradlint.checking.designing import Designer
from gradlint.checking.not_tried import COMPLEX
from gradlint.checking.severity import MATERIAL
from gradlint.diagnosis.engine_errors import explain
from gradlint.experiments.finite.extremes import LARGEST_GROWTH, growth
from gradlint.experiments.judge_at_other_inputs import (
    NOT_FINITE,
    RAISED,
    REFUSED,
    RIGHT,
    WRONG,
    JudgementElsewhere,
    affords_another,
    judge_at_other_inputs,
    judged_inputs,
    same_outputs,
)
from gradlint.experiments.layout.meant_broadcasting import (
    broadcasting_is_meant,
    is_said_or_handled,
    smaller_operands,
)
from gradlint.experiments.preconditions import why_not_measurable, why_not_run
from gradlint.experiments.shape.compared_gradients import returned_shapes
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.uneven_inputs import unequal_elements
from gradlint.inputs.designed import Designed
from gradlint.inputs.designed_arguments import (
    axes_from_behind,
    is_written_for,
    with_arguments,
)
from gradlint.inputs.designed_broadcasts import broadcast
from gradlint.inputs.designed_values import of_one_sign
from gradlint.inputs.resized import alike_where_unlike, resizable, tensors_of, within_bounds
from gradlint.model.events import FURTHER, Begin, Emit, Further
from gradlint.model.op import Op
from gradlint.model.report import Tried
from gradlint.model.sample import Sample
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.verdict import DIFFERS
from gradlint.trace.divisions import ZeroDivisors
from gradlint.trace.graph import python_nodes
from gradlint.trace.op_io import OpRaised, Output

#: Calls that further samples take together, and their share of ``--timeout``, at most (heuristic:
#: the rules take 170 calls on a small op).
MOST_CALLS, SHARE_OF_TIMEOUT = 90, 0.1

#: Calls that samples with several arguments moved take beside these, at most (heuristic: about
#: eight looks, which a fault at two options needs; most ops have fewer than two options).
MOST_CALLS_OF_SEVERAL = 40

#: Calls of one look that count towards these: a disagreement is measured again, at length.
MOST_OF_A_LOOK = 10

#: Significand bits below which one direction says too little: float16 and bfloat16.
FEWEST_BITS = 24

#: The verdict where forward broadcasts by accident, as backward shows.
ACCIDENT = "accepted by accident"

#: Factor by which outputs may grow where an option was moved (heuristic: a power or an exponential
#: with another option makes 1e5 times as much, an iteration that diverges soon makes any amount).
GROWTH_OF_MOVED = 1e6

#: By verdict, the families and rules that explain it.
_EXPLAINED_BY = {
    WRONG: ("GL10", "GL201", "GL203", "GL204", "GL401"),
    RAISED: ("GL004", "GL10", "GL201", "GL203", "GL204"),
    NOT_FINITE: ("GL302",),
}


def _bounded(designed: Designed) -> Designed:
    """``designed`` with values that keep the bounds between arguments."""
    others = [within_bounds(sample) for sample in designed.alternatives]
    suiting = designed.suiting and within_bounds(designed.suiting)
    sample = within_bounds(designed.sample)
    return replace(designed, sample=sample, alternatives=others, suiting=suiting)


@dataclass
class FurtherSamples:
    """The further samples of one subject.

    Args:
        subject: the op on its first sample, after the rules have run on it.
        emit: takes the events.
        done: (code, sample label) pairs that ran before a crash.
        explain: runs the rules of some codes on a sample where something is wrong.
        told: names of the inputs whose gradient was found wrong so far; ``explain`` adds to it.
        others: samples with another optional argument given or left out.
        given: all samples of the op.
    """

    subject: Subject
    emit: Emit
    done: frozenset[tuple[str, str]]
    explain: Callable[[Op, Sample, tuple[str, ...]], None]
    told: set[str]
    others: Sequence[Sample] = ()
    given: Sequence[Sample] = ()
    _spent: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    _refused: set[str] = field(default_factory=set)
    _taken: dict[str, list[Any]] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    @cached_property
    def _designer(self) -> Designer:
        until = had_seconds() + SHARE_OF_TIMEOUT * self.subject.settings.timeout
        known = self.subject, self.others, self.given
        return Designer(*known, until, self._taken, self._refused)

    def run(self) -> None:
        """Look at one sample after the other, while there are calls and time left."""
        self.subject.barely_wrong = self._barely_wrong()
        try:
            if self._why_none():
                return
        except OpRaised:  # it does not run again at its sample: the rules say so
            return
        self._look_at_all()
        if affords_another(self.subject):
            self._look_at_second_order()

    def _look_at_second_order(self) -> None:
        """Judge second derivatives with numbers away from their defaults too, where backward calls
        a Function whose own backward somebody wrote: what PyTorch derives from backward is right
        with any numbers."""
        moved = {name: taken[0] for name, taken in self._taken.items() if type(taken[0]) is float}
        if not moved or not self._calls_functions_in_backward():
            return
        there = with_arguments(self.subject.op, self.subject.sample, moved)
        shown = ", ".join(f"{name}={value}" for name, value in moved.items())
        there = replace(there, label=f"with {shown}, at second order", kind="same")
        if (FURTHER, there.label) in self.done:
            return
        self.emit(Begin(FURTHER, there.label))
        report = there.report(self.subject.op.signature)
        self.emit(Further(Tried(there.label, "undecided"), report))
        self.explain(self.subject.op, there, ("GL501",))

    def _calls_functions_in_backward(self) -> bool:
        """Whether gradients come from Functions of the user's beside those that forward calls."""
        subject, problem = self.subject, self.subject.problem
        try:
            leaves, outputs = problem.linearize()
            chosen = [item for item in outputs if item.name in subject.run.cotangents]
            vs = [subject.run.cotangents[item.name] for item in chosen]
            gradients = problem.backward(chosen, leaves, vs, create_graph=True)
        except OpRaised:
            return False
        own = {node.function for node in subject.run.nodes}
        attached = [gradient for gradient in gradients if gradient is not None]
        return any(node._forward_cls not in own for node in python_nodes(attached))

    def _barely_wrong(self) -> frozenset[int]:
        """The inputs whose gradient differs at the sample, by less than is told as a fault: that of
        ``30 * tanh(x / 30)`` hardly depends on its formula where values are about one."""
        subject = self.subject
        if not subject.first_order_is_known:
            return frozenset()
        decision = subject.first_order
        pairs = zip(decision.judgement.inputs, decision.verdicts, strict=True)
        return frozenset(
            item.index
            for item, verdict in pairs
            if verdict == DIFFERS
            and item.worst.relative_error <= MATERIAL
            and subject.problem.inputs[item.index].name not in self.told
        )

    def _look_at_all(self) -> None:
        for designed in map(_bounded, self._designer.designed()):
            if alike_where_unlike(designed.sample):
                continue
            if had_seconds() >= self._designer.until or not affords_another(self.subject):
                return
            several = len(designed.sample.moved) > 1
            if self._spent[several] >= (MOST_CALLS_OF_SEVERAL if several else MOST_CALLS):
                continue
            label = designed.sample.label
            if label not in self._seen and (FURTHER, label) not in self.done:
                self._seen.add(label)
                self._look_at(designed)

    def _why_none(self) -> str:
        subject = self.subject
        reason = why_not_run(subject) or why_not_measurable(subject)
        if reason or not judged_inputs(subject):
            return reason or "no gradient is right at the sample"
        if not resizable(subject.sample):
            return "a tensor is sparse or nested"
        values = subject.problem.values()
        bits = min(significand_bits(value.dtype) for value in values)
        return "too few digits" if bits < FEWEST_BITS else ""

    def _look_at(self, designed: Designed) -> None:
        label = designed.sample.label
        problem = self.subject.problem
        forward, backward = problem.forward_calls, problem.backward_calls
        started = time.perf_counter()
        self.emit(Begin(FURTHER, label))
        with self._covering():
            seen, sample = self._judged(designed)
        self._note_moved(designed, sample, seen)
        if (
            self._is_at_a_pole(designed, seen, sample)
            or self._leaves_range(designed, seen)
            or self._counts_no_axes_from_behind(designed, seen, sample)
        ):
            seen.verdict = REFUSED
        elif self._is_for_backward_only(designed, seen):
            sample = replace(sample, backward_only=True)
        elif designed.as_if is not None and seen.verdict == WRONG:
            operands = smaller_operands(self.subject.sample, sample, self.subject)
            names = [item.name for item in seen.subject.problem.inputs]
            wrong = {names[position] for position in seen.positions}
            meant = broadcasting_is_meant(self.subject, sample, operands, wrong)
            sample = replace(sample, unmeant=not meant)
        elif seen.verdict in (RIGHT, WRONG) and designed.op is None:
            for name, value in designed.moved.items() if len(designed.moved) == 1 else ():
                taken = self._taken.setdefault(name, [])
                if repr(value) not in map(repr, taken):
                    taken.append(value)
        codes = () if self._is_told(seen, designed, sample) else _EXPLAINED_BY.get(seen.verdict, ())
        tried = Tried(
            label,
            seen.verdict,
            problem.forward_calls - forward,
            problem.backward_calls - backward,
            time.perf_counter() - started,
        )
        several = len(designed.sample.moved) > 1
        calls = tried.forward_calls + tried.backward_calls
        self._spent[several] += min(calls, MOST_OF_A_LOOK)
        if seen.verdict == REFUSED:
            self._refused.add(label)
        self.emit(Further(tried, sample.report(self.subject.op.signature) if codes else None))
        if codes:
            self.explain(designed.op or self.subject.op, sample, codes)

    def _covering(self) -> AbstractContextManager[None]:
        """Note what is reached of the user's code, if something is left."""
        coverage = self.subject.coverage
        if coverage is None or coverage.full:
            return nullcontext()
        return coverage.watching()

    def _note_moved(self, designed: Designed, sample: Sample, seen: JudgementElsewhere) -> None:
        """Note that arguments were judged at other values than the first sample's."""
        coverage = self.subject.coverage
        if coverage is not None and seen.verdict in (RIGHT, WRONG, NOT_FINITE):
            coverage.moved |= {*designed.moved, *sample.moved}
            if any(tensor.is_complex() for _, tensor in sample.named_tensors(None)):
                coverage.moved.add(COMPLEX)

    def _is_for_backward_only(self, designed: Designed, seen: JudgementElsewhere) -> bool:
        """Whether the gradient is wrong with numbers moved on which forward does not depend, as an
        epsilon that keeps backward from dividing by zero: that says nothing of the formula."""
        moved = designed.moved.values()
        return (
            seen.verdict == WRONG
            and bool(moved)
            and all(type(value) is float for value in moved)
            and same_outputs(seen.outputs, self.subject.run.outputs)
        )

    def _is_at_a_pole(self, designed: Designed, seen: JudgementElsewhere, sample: Sample) -> bool:
        """Whether a number that was moved makes forward divide by zero: ``1 / (alpha - 1)`` at 1.
        What comes out of that may be finite, and says that the number is hardly meant."""
        numbers = [value for value in designed.moved.values() if type(value) in (int, float)]
        if seen.verdict not in (WRONG, NOT_FINITE) or not numbers:
            return False
        return self._divides_by_zero(sample) and not self._divides_by_zero()

    def _leaves_range(self, designed: Designed, seen: JudgementElsewhere) -> bool:
        """Whether the outputs grow beyond all measure, as those of an integrator whose steps are
        too large for it: gradients lose all digits there, and those of a backward that runs the
        steps the other way round earlier."""
        if seen.verdict not in (WRONG, NOT_FINITE):
            return False
        outputs = {item.name: item.value.detach() for item in seen.outputs}
        most = GROWTH_OF_MOVED if designed.moved else LARGEST_GROWTH
        return not growth(self.subject, outputs) <= most

    def _counts_no_axes_from_behind(
        self, designed: Designed, seen: JudgementElsewhere, sample: Sample
    ) -> bool:
        """Whether an axis was counted from behind where forward knows none: it takes the number,
        and computes something else than along that axis counted from the front."""
        if seen.verdict not in (WRONG, RAISED, NOT_FINITE) or designed.op is not None:
            return False
        behind = axes_from_behind(designed.moved)
        problem = self.subject.problem
        for rank in {tensor.dim() for tensor in tensors_of(sample)} if behind else ():
            front = {name: value + rank for name, value in behind.items()}
            there = problem.at(with_arguments(self.subject.op, sample, front))
            try:
                if min(front.values()) >= 0 and _same(there.forward(), seen.outputs):
                    return False
            except OpRaised:
                continue
            finally:
                problem.forward_calls += there.forward_calls
        return bool(behind)

    def _divides_by_zero(self, sample: Sample | None = None) -> bool:
        """Whether forward does so, at the first sample or another one."""
        watched = ZeroDivisors()
        self._designer.forward_watched(watched, sample)
        return watched.infinite

    def _is_told(self, seen: JudgementElsewhere, designed: Designed, sample: Sample) -> bool:
        """Whether what is seen needs no explanation, or was explained before."""
        if seen.verdict == RAISED:
            return not (_must_run(designed) or _breaks_contract(seen))
        if seen.verdict == NOT_FINITE:
            return sample.kind == "extreme"  # GL302 looks at extremes itself
        names = {seen.subject.problem.inputs[k].name for k in seen.positions}
        return names <= self.told

    def _judged(self, designed: Designed) -> tuple[JudgementElsewhere, Sample]:
        """The first of the sample and its alternatives that forward takes, and what is seen."""
        if designed.as_if is not None:
            return self._judged_broadcast(designed.sample, designed.as_if), designed.sample
        if designed.slices:
            return self._judged_batch(designed.sample, designed.slices), designed.sample
        samples = (designed.sample, *designed.alternatives)
        seen, sample = self._first_taken(samples, designed)
        if seen.verdict == RAISED and not _must_run(designed):
            # Forward may have taken it by accident, as it broadcasts a remainder of one element.
            rest = samples[next(k for k, each in enumerate(samples) if each is sample) + 1 :]
            elsewhere, other = self._first_taken(rest, designed) if rest else (seen, sample)
            if elsewhere.verdict in (RIGHT, WRONG):
                seen, sample = elsewhere, other
        seen, sample = self._or_positive(designed, seen, sample)
        if designed.suiting is not None and seen.verdict in (RAISED, WRONG):
            elsewhere = judge_at_other_inputs(self.subject, designed.suiting, designed.op)
            if elsewhere.verdict == RIGHT:
                seen, sample = elsewhere, designed.suiting
        if designed.alternatives and self._is_unseen(seen, designed, sample):
            # The last alternative has other sizes in one tensor alone.
            elsewhere, other = self._first_taken(designed.alternatives[::-1], designed)
            if elsewhere.verdict in (RIGHT, WRONG):
                seen, sample = elsewhere, other
        if seen.verdict == RIGHT and designed.moved:
            seen = self._judged_unequal(seen, sample, designed.op)
        if designed.only_if_seen and _same(seen.outputs, self.subject.run.outputs):
            seen.verdict = REFUSED
        if designed.unlike is not None and self._is_alike(designed.unlike, sample, seen):
            seen.verdict = REFUSED
        return seen, sample

    def _or_positive(
        self, designed: Designed, seen: JudgementElsewhere, sample: Sample
    ) -> tuple[JudgementElsewhere, Sample]:
        """What is seen with positive numbers alone, where forward takes these with an argument
        moved, and refused ``sample``; not for inputs that were given."""
        guessed = designed.moved and sample.origin == "inferred" and seen.verdict == REFUSED
        positive = of_one_sign(self.subject.op, designed.sample) if guessed else None
        if positive is None:
            return seen, sample
        elsewhere = judge_at_other_inputs(self.subject, positive, designed.op)
        return (elsewhere, positive) if elsewhere.verdict in (RIGHT, WRONG) else (seen, sample)

    def _judged_unequal(
        self, seen: JudgementElsewhere, sample: Sample, op: Op | None
    ) -> JudgementElsewhere:
        """What is seen once the elements of a parameter differ that are all equal, as a weight of
        ones, which a gradient may leave out: as GL401 looks at it at the first sample."""
        unequal = unequal_elements(seen.subject)
        if not unequal:
            return seen
        elsewhere = judge_at_other_inputs(self.subject, sample, op, values=unequal)
        return elsewhere if elsewhere.verdict == WRONG else seen

    def _is_alike(self, op: Op, sample: Sample, seen: JudgementElsewhere) -> bool:
        """Whether another form of the op returns the same at ``sample``, or nothing."""
        there = Subject(op, sample, self.subject.settings).problem
        try:
            return _same(there.forward(), seen.outputs)
        except OpRaised:
            return True
        finally:
            self.subject.problem.forward_calls += there.forward_calls

    def _first_taken(
        self, samples: Sequence[Sample], designed: Designed
    ) -> tuple[JudgementElsewhere, Sample]:
        for sample in samples:
            seen = judge_at_other_inputs(self.subject, sample, designed.op)
            if seen.verdict != REFUSED:
                break
        return seen, sample

    def _is_unseen(self, seen: JudgementElsewhere, designed: Designed, sample: Sample) -> bool:
        """Whether an integer was moved that makes no difference at the sizes of the sample, as a
        stride where a window fits once."""
        return (
            seen.verdict == RIGHT
            and sample is designed.sample
            and any(type(value) is int for value in designed.moved.values())
            and _same(seen.outputs, self.subject.run.outputs)
        )

    def _judged_broadcast(self, sample: Sample, as_if: Sample) -> JudgementElsewhere:
        """What is seen where an operand is broadcast, by a backward that is meant for it: it sums
        gradients to the shapes of their inputs itself, and is right for some operand."""
        verdict = self._taken_as(sample, as_if)
        if verdict != RIGHT:
            return JudgementElsewhere(verdict, self.subject)
        seen = judge_at_other_inputs(self.subject, sample)
        if seen.verdict == RAISED or (seen.verdict == WRONG and not self._takes_smaller(sample)):
            seen.verdict = ACCIDENT
        return seen

    def _judged_batch(self, sample: Sample, slices: Sequence[Sample]) -> JudgementElsewhere:
        """What is seen where a tensor is a batch, if forward returns for it what it returns for
        each of its slices, and backward a gradient of the shape of each input."""
        problem = self.subject.problem
        there = Subject(self.subject.op, sample, self.subject.settings)
        alone = [problem.at(one) for one in slices]
        try:
            verdict = REFUSED
            if there.run.error is None:
                shapes = returned_shapes(there)[0]
                fits = all(shape == wanted for _, shape, wanted in shapes)
                rows = [one.forward() for one in alone]
                verdict = RIGHT if fits and _are_rows(there.run.outputs, rows) else REFUSED
        except OpRaised:
            verdict = REFUSED
        finally:
            for one in (there.problem, *alone):
                problem.forward_calls += one.forward_calls
                problem.backward_calls += one.backward_calls
        if verdict != RIGHT:
            return JudgementElsewhere(verdict, self.subject)
        return judge_at_other_inputs(self.subject, sample)

    def _takes_smaller(self, sample: Sample) -> bool:
        """Whether the op is meant to broadcast the operands that are smaller in ``sample``: its
        code asks for their sizes, or its gradient is right where another one is broadcast."""
        operands = smaller_operands(self.subject.sample, sample, self.subject)
        return is_said_or_handled(self.subject, operands) or self._broadcasts

    def _taken_as(self, sample: Sample, as_if: Sample) -> str:
        """Whether forward and backward both broadcast (RIGHT), neither does (REFUSED), or only
        forward (ACCIDENT)."""
        problem = self.subject.problem
        there = Subject(self.subject.op, sample, self.subject.settings)
        whole = problem.at(as_if)
        try:
            error = there.run.error
            if error is not None:
                return REFUSED if error.phase == "forward" else ACCIDENT
            if any(shape != wanted for _, shape, wanted in returned_shapes(there)[0]):
                return ACCIDENT  # autograd's engine sums
            return RIGHT if _same(there.run.outputs, whole.forward()) else REFUSED
        except OpRaised:
            return REFUSED
        finally:
            problem.forward_calls += there.problem.forward_calls + whole.forward_calls
            problem.backward_calls += there.problem.backward_calls

    @cached_property
    def _broadcasts(self) -> bool:
        """Whether the gradient is right where some operand is broadcast."""
        return any(
            designed.as_if is not None
            and self._taken_as(designed.sample, designed.as_if) == RIGHT
            and judge_at_other_inputs(self.subject, designed.sample).verdict == RIGHT
            for designed in broadcast(self.subject.op, self.subject.sample)
        )


def _must_run(designed: Designed) -> bool:
    """Whether backward has to run where forward does. A width of a module has to fit other sizes of
    its inputs, which gradlint guesses."""
    widths = designed.op is not None and any(type(v) is int for v in designed.moved.values())
    return designed.must_run or (is_written_for(designed.moved) and not widths)


def _breaks_contract(seen: JudgementElsewhere) -> bool:
    """Whether the engine rejects the number of gradients: no arguments can be at fault."""
    found = explain(seen.error.error) if seen.error is not None else None
    return found is not None and found.slug == "wrong-number-of-gradients"


def _are_rows(outputs: Sequence[Output], rows: Sequence[Sequence[Output]]) -> bool:
    """Whether each of ``outputs`` holds those of ``rows`` one behind the other."""
    return bool(outputs) and all(
        len(row) == len(outputs)
        and all(
            whole.value.shape == (len(rows), *one.value.shape)
            and whole.value.dtype == one.value.dtype
            and torch.allclose(whole.value[place].detach(), one.value.detach())
            for whole, one in zip(outputs, row, strict=True)
        )
        for place, row in enumerate(rows)
    )


def _same(outputs: Sequence[Output], others: Sequence[Output]) -> bool:
    return len(outputs) == len(others) and all(
        (one.value.shape, one.value.dtype) == (other.value.shape, other.value.dtype)
        and torch.allclose(one.value.detach(), other.value.detach())
        for one, other in zip(outputs, others, strict=True)
    )
