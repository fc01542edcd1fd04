"""Further samples: what may show that the first sample hides.

What they are follows from what forward and backward compare with, index and divide by, from what
arguments are called and documented as, and from which of the samples before forward took.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gradlint.base.clock import had_seconds
from gradlint.checking.not_tried import for_complex
from gradlint.experiments.crossed_thresholds import passed_thresholds, passing_thresholds
from gradlint.experiments.forward_under_autograd import without_backward
from gradlint.experiments.judge_at_other_inputs import (
    affords_another,
    same_outputs,
)
from gradlint.experiments.layout.meant_broadcasting import (
    text_of,
)
from gradlint.experiments.shape.compared_gradients import returned_tensors
from gradlint.experiments.singular_inputs import gradients_under_autograd
from gradlint.experiments.steered_inputs import steered_samples
from gradlint.experiments.subject import Subject
from gradlint.inputs.designed import Designed
from gradlint.inputs.designed_arguments import (
    EPSILON,
    other_arguments,
    other_optionals,
    several_arguments,
    with_arguments,
)
from gradlint.inputs.designed_blocks import smaller_blocks, unlike_factors
from gradlint.inputs.designed_broadcasts import batched_alone, broadcast
from gradlint.inputs.designed_constructions import (
    constructions_with_optionals,
    other_constructions,
    other_mode,
    with_given_weights,
    with_larger_parameters,
    with_parameters_around,
    with_parameters_of_both_signs,
)
from gradlint.inputs.designed_indices import other_indices, with_empty_segment
from gradlint.inputs.designed_kinds import (
    as_batch,
    as_complex,
    in_double,
    with_empty_lengths,
    with_equal_eigenvalues,
)
from gradlint.inputs.designed_lists import one_more, with_empty_part
from gradlint.inputs.designed_marks import marked_labels
from gradlint.inputs.designed_masks import mixed_masks, with_garbage
from gradlint.inputs.designed_optionals import LeftOut, without_optionals
from gradlint.inputs.designed_orders import ranking, with_ties
from gradlint.inputs.designed_tested import exact_values
from gradlint.inputs.designed_values import (
    around,
    at_documented_ends,
    beyond,
    beyond_own_bounds,
    farther_alone,
    of_both_signs,
    of_other_lengths,
    on_the_other_side,
    other_values,
    up_to_limits,
    with_other_signs,
)
from gradlint.inputs.documentation import documented_complex, prose
from gradlint.inputs.seen_domains import with_seen_domains
from gradlint.model.op import Op
from gradlint.model.sample import Sample, positional_names
from gradlint.numerics.products import all_finite
from gradlint.trace.comparisons import Comparisons
from gradlint.trace.op_io import OpRaised

#: Makes samples with complex numbers in all inputs but those named.
Beside = Callable[[set[str]], Iterator[Designed]]

#: Inputs of which one is kept real in turns where forward does not take all as complex numbers
#: (heuristic: twice as many calls of forward).
MOST_REAL = 5

#: The smallest factor of values by which they get below what backward alone compares with
#: (heuristic: below that it is a guard against dividing by zero, which forward does not need).
LEAST_OF_BACKWARD = 1e-3

#: Share of a threshold to which parameters are made to take what is below it, the largest factor
#: for that, and how many are tried (heuristic: parameters that were trained differ by about as
#: much from those that a constructor makes).
ABOVE, FARTHEST, MOST_FACTORS = 2.0, 50.0, 2

#: Code that compares, or clamps.
_COMPARES = re.compile(r"[<>]|\b(?:clamp|clip|gt|ge|lt|le|threshold|hardtanh)\w*\(")


@dataclass
class Designer:
    """Makes further samples of one subject, each when it is asked for.

    Args:
        subject: the op on its first sample, after the rules have run on it.
        others: samples with another optional argument given or left out.
        given: all samples of the op.
        until: seconds of :func:`~gradlint.base.clock.had_seconds` until which calls are made.
        taken: argument → values that forward took; who looks at the samples adds to it.
        refused: labels of samples that forward refused; who looks at them adds to it.
    """

    subject: Subject
    others: Sequence[Sample]
    given: Sequence[Sample]
    until: float
    taken: dict[str, list[Any]]
    refused: set[str]
    _in_backward: Comparisons | None = None

    def designed(self) -> Iterator[Designed]:
        """The samples, one after the other."""
        op, seed = self.subject.op, self.subject.seed
        sample = with_seen_domains(op, self.subject.sample)
        inferred = sample.origin == "inferred"
        watched = self._watched()
        guards = watched.guards() if watched is not None else {}
        yield from other_arguments(op, sample, seed, guards)
        with_optionals = [*self._with_left_out(sample)]
        yield from with_optionals
        yield from () if inferred else without_optionals(op, sample, self.given)
        if inferred and self.subject.coverage is not None:
            divisors = self.subject.coverage.divisors()
            yield from smaller_blocks(op, sample, divisors, seed)
            yield from unlike_factors(op, sample, divisors, self.taken, seed)
        if watched is None:
            return
        yield from of_other_lengths(op, sample)
        yield from self._of_meanings(sample, watched)
        if inferred:
            yield from beyond(op, sample) if watched.one_sided else ()
            yield from farther_alone(op, sample) if watched.apart or watched.one_sided else ()
            yield from up_to_limits(op, sample)
        passed: set[float] = set()
        for threshold, designed in steered_samples(self.subject, sample):
            passed.add(threshold)
            yield designed
        if inferred:
            yield from self._passing(sample, watched, passed)
            yield from self._around_moved(watched)
            yield from self._of_other_kinds()
            yield from self._of_both_signs(sample)
        limits = [
            (item.tensor, item.threshold)
            for item in watched.compared.values()
            if item.side and abs(item.threshold) > EPSILON
        ]
        yield from with_parameters_around(op, sample, limits)
        yield from other_mode(op, sample)
        yield from with_given_weights(op, sample)
        if inferred:
            yield from self._of_constructions(sample, watched)
            yield from constructions_with_optionals(op, self.others)
        others = [*self.others, *(designed.sample for designed in with_optionals)]
        yield from other_optionals(op, others, self.taken, seed)
        yield from several_arguments(op, sample, self.taken, seed, self.refused)
        yield from broadcast(op, sample)
        if inferred:
            yield from at_documented_ends(op, sample)
            yield from batched_alone(op, sample)
            yield from other_values(op, sample)

    def _with_left_out(self, sample: Sample) -> Iterator[Designed]:
        """Samples with optional tensors that no other sample has."""
        subject, problem = self.subject, self.subject.problem

        def affords(calls: int) -> bool:
            return had_seconds() < self.until and affords_another(subject, calls)

        left_out = LeftOut(subject.op, sample, self.given, subject.seed, affords)
        try:
            yield from left_out.made()
        finally:
            problem.forward_calls += left_out.forward_calls
            problem.backward_calls += left_out.backward_calls

    def _of_meanings(self, sample: Sample, watched: Comparisons) -> Iterator[Designed]:
        """Samples that forward treats in another way, of the same kind as inputs that were given,
        too: what is ignored occurs, indices repeat, masks are mixed, numbers tie or pass a
        threshold."""
        op = self.subject.op
        yield from marked_labels(op, sample)
        yield from mixed_masks(op, sample)
        yield from self._of_left_out(sample)
        repeat = not watched.overwrites
        yield from other_indices(op, sample, repeat=repeat, from_the_end=watched.from_the_end)
        yield from with_empty_segment(op, sample)
        yield from exact_values(op, sample, watched.tested)
        for name in self._ranking(sample):
            yield from with_ties(op, sample, name)
        self._in_backward = self._backward_watched() if sample.origin == "inferred" else None
        beside = self._in_backward.thresholds if self._in_backward is not None else []
        marks = dict.fromkeys([*watched.thresholds, *beside])
        yield from around(op, sample, [m for m in marks if m not in watched.bounds_of_steps()])
        if sample.origin != "inferred":
            yield from with_other_signs(op, sample, watched.signed)
        if sample.origin == "inferred":
            compared = watched.compared.items()
            yield from on_the_other_side(op, sample, [(i.tensor, i.threshold) for _, i in compared])
            bounds = [(i.tensor, i.threshold) for _, i in compared if i.takes_negative]
            yield from beyond_own_bounds(op, sample, bounds)

    def _backward_watched(self, sample: Sample | None = None) -> Comparisons | None:
        """What backward compares with, at the first sample or another one, if its code compares:
        where its threshold is not that of forward, it is wrong between the two."""
        subject, problem = self.subject, self.subject.problem
        backward = getattr(subject.op.function, "backward", None)
        if backward is None or not _COMPARES.search(text_of(backward)):
            return None
        there = problem if sample is None else problem.at(sample)
        watched = Comparisons()
        try:
            leaves, outputs = there.linearize()
            chosen = [item for item in outputs if item.name in subject.run.cotangents]
            vs = [subject.run.cotangents[item.name] for item in chosen]
            with watched:
                there.backward(chosen, leaves, vs)
        except (OpRaised, RuntimeError):
            return None
        finally:
            if there is not problem:
                problem.forward_calls += there.forward_calls
                problem.backward_calls += there.backward_calls
        return watched

    def _passing(
        self, sample: Sample, watched: Comparisons, passed: Collection[float]
    ) -> Iterator[Designed]:
        """Values that pass what forward compares with, beside numbers that were passed, or backward
        alone."""
        op = self.subject.op
        left = {k: item for k, item in watched.compared.items() if item.threshold not in passed}
        yield from passing_thresholds(op, sample, left, self._watched)
        seen = self._in_backward
        if seen is not None:
            known = {item.threshold for item in watched.compared.values()}
            alone = {k: v for k, v in seen.compared.items() if v.threshold not in known}
            yield from passing_thresholds(
                op, sample, alone, self._backward_watched, least=LEAST_OF_BACKWARD
            )

    def _of_both_signs(self, sample: Sample) -> Iterator[Designed]:
        """Numbers of both signs where backward alone made them positive, if autograd through
        forward's own operations is finite there: then backward should be, too."""
        for designed in of_both_signs(self.subject.op, sample):
            there = self.subject.problem.at(designed.sample)
            plain = gradients_under_autograd(self.subject, there)
            if plain and all(bool(value.isfinite().all()) for value in plain.values()):
                yield designed

    def _of_left_out(self, sample: Sample) -> Iterator[Designed]:
        """Large values of elements that a mask leaves out, where forward does not read them, and
        backward makes what is not finite of them."""
        for before, designed in with_garbage(self.subject.op, sample):
            if not affords_another(self.subject, 2):
                return
            if self._returns_the_same(before, designed.sample) and self._spoils(designed.sample):
                yield designed

    def _spoils(self, sample: Sample) -> bool:
        """Whether a gradient is not finite at ``sample``. One forward and one backward call."""
        problem = self.subject.problem
        there = problem.at(sample)
        try:
            found = there.pull(self.subject.run.cotangents)
        except OpRaised:
            return False
        finally:
            problem.forward_calls += there.forward_calls
            problem.backward_calls += there.backward_calls
        return not all(gradient is None or all_finite(gradient) for gradient in found)

    def _returns_the_same(self, one: Sample, other: Sample) -> bool:
        """Whether forward returns the same finite values for both samples. Two forward calls."""
        problem = self.subject.problem
        pair = [problem.at(sample) for sample in (one, other)]
        try:
            before, after = (there.forward() for there in pair)
        except OpRaised:
            return False
        finally:
            problem.forward_calls += sum(there.forward_calls for there in pair)
        return same_outputs(before, after) and all(all_finite(item.value) for item in before)

    def _of_other_kinds(self) -> Iterator[Designed]:
        """Samples that the op takes only if it was written for them."""
        op, sample, coverage = self.subject.op, self.subject.sample, self.subject.coverage
        yield from in_double(op, sample)
        yield from one_more(op, sample)
        yield from with_empty_lengths(op, sample)
        yield from with_empty_part(op, sample)
        yield from with_equal_eigenvalues(op, sample)
        expected = coverage is not None and for_complex(coverage, transforms=False)
        yield from self._of_complex(expected=expected)
        yield from as_batch(op, sample)

    def _of_complex(self, *, expected: bool) -> Iterator[Designed]:
        """Complex numbers in all inputs but those that are meant to be real. Where forward refuses
        that, an input may have to be real: one stays so, then all but one, until forward takes
        what is left."""

        def beside(real: set[str]) -> Iterator[Designed]:
            return as_complex(self.subject.op, self.subject.sample, expected=expected, real=real)

        for designed in beside(set()):
            if self.forward_watched(nullcontext(), designed.sample):
                real = self._meant_real(designed.sample, beside)
                yield from beside(real) if real else (designed,)
            else:
                yield self._partly_complex(designed, beside) or designed

    def _partly_complex(self, refused: Designed, beside: Beside) -> Designed | None:
        """The first that forward takes of those in which an input of ``refused`` stays real, and of
        those in which a single one is complex; None too where backward wants others real."""
        names = self._complex_inputs(refused.sample)
        kept = [{name} for name in names] + [set(names) - {name} for name in names]
        for real in kept if 1 < len(names) <= MOST_REAL else ():
            for one in beside(real):
                if self.forward_watched(nullcontext(), one.sample):
                    return None if any(self._given_real(one.sample).values()) else one
        return None

    def _ranking(self, sample: Sample) -> Iterator[str]:
        """Names of the tensors of which only the order counts: outputs stay the same, to the last
        bit, with other numbers in that order."""
        subject, problem = self.subject, self.subject.problem
        for name, other in ranking(subject.op, sample):
            there = problem.at(other.sample)
            try:
                outputs = there.forward()
            except OpRaised:
                continue
            finally:
                problem.forward_calls += there.forward_calls
            if same_outputs(outputs, subject.run.outputs):
                yield name

    def _meant_real(self, sample: Sample, beside: Beside) -> set[str]:
        """The inputs for which backward returns real gradients where all are complex, and complex
        ones for others, or does so once they are real beside complex ones: they are meant to be
        real, unless the documentation speaks of complex ones alone, and no argument is complex yet
        that it may speak of.

        Args:
            sample: all of them complex.
            beside: makes samples in which some stay real.
        """
        op = self.subject.op
        text = prose(op.defining) if op.defining is not None else ""
        named = self.subject.sample.named_tensors(op.signature)
        if documented_complex(text) and not any(tensor.is_complex() for _, tensor in named):
            return set()
        given = self._given_real(sample)
        real = {name for name, is_real in given.items() if is_real}
        names = self._complex_inputs(sample)
        if not real and 1 < len(names) <= MOST_REAL:
            real = {name for name in names if self._is_real_by_itself(name, beside)}
        return real if len(real) < len(given) else set()

    def _is_real_by_itself(self, name: str, beside: Beside) -> bool:
        """Whether backward returns a real gradient for ``name`` alone where the others are
        complex, of its own accord: what is computed with them is complex."""
        for one in beside({name}):
            given = self._given_real(one.sample, all_inputs=True)
            return given.pop(name, False) and not any(given.values())
        return False

    def _complex_inputs(self, sample: Sample) -> list[str]:
        named = sample.named_tensors(self.subject.op.signature)
        return [name for name, tensor in named if tensor.is_complex()]

    def _given_real(self, sample: Sample, *, all_inputs: bool = False) -> dict[str, bool]:
        """Whether backward returns a real gradient, for each complex input of ``sample``, or for
        each that there is."""
        there = Subject(self.subject.op, sample, self.subject.settings)
        there.problem.preserve_state = self.subject.problem.preserve_state
        items, _ = returned_tensors(there)
        self.subject.problem.forward_calls += there.problem.forward_calls
        self.subject.problem.backward_calls += there.problem.backward_calls
        return {
            item.name: not item.value.is_complex()
            for item in items
            if item.meta and (item.meta.dtype.is_complex or all_inputs)
        }

    def _around_moved(self, watched: Comparisons) -> Iterator[Designed]:
        """The sample with all numbers away from their defaults, on both sides of the thresholds
        that they are: a tiny epsilon is one that no value comes near."""
        op, sample = self.subject.op, self.subject.sample
        moved = {name: taken[0] for name, taken in self.taken.items() if type(taken[0]) is float}
        if not moved:
            return
        there = with_arguments(op, sample, moved)
        there.label = "with " + ", ".join(f"{name}={value}" for name, value in moved.items())
        seen = self._watched(there)
        if seen is not None and set(seen.thresholds) - set(watched.thresholds):
            yield from around(op, there, seen.thresholds)
            before = {value: self._was(name) for name, value in moved.items()}
            yield from passing_thresholds(op, there, seen.compared, self._watched, moved=before)

    def _was(self, name: str) -> float:
        """The number of an argument of forward at the first sample; infinite for none."""
        op, sample = self.subject.op, self.subject.sample
        assert op.signature is not None
        names = positional_names(op.signature, len(sample.args))
        given = {**dict(zip(names, sample.args, strict=True)), **sample.kwargs}
        value = given.get(name, op.signature.parameters[name].default)
        return value if type(value) is float else math.inf

    def _of_constructions(self, sample: Sample, watched: Comparisons) -> Iterator[Designed]:
        """Modules made with other arguments, and with larger parameters, too; where an argument is
        a number that forward compares with, also values that pass it."""
        op = self.subject.op
        yield from self._passing_by_parameters(op, sample, watched)
        signed = with_parameters_of_both_signs(op, sample)
        yield from [signed] if signed is not None else []
        for designed in other_constructions(op, sample):
            yield designed
            yield from self._marked_too(designed)
            if designed.op is None or not watched.compared:
                continue
            watch = partial(self._watched, op=designed.op)
            seen = watch(designed.sample)
            if seen is None:
                continue
            for larger in self._passing_by_parameters(designed.op, designed.sample, seen):
                yield replace(larger, moved=designed.moved)
            # The instance's own attributes: a property is code of the user's, which may raise.
            held = vars(op.module) if op.module is not None else {}
            now = [op.constructor.get(name, held.get(name, 0)) for name in designed.moved]
            if not all(type(value) is float and value in watched.thresholds for value in now):
                continue
            before = dict(zip(designed.moved.values(), now, strict=True))
            compared = seen.compared
            for passing in passing_thresholds(op, designed.sample, compared, watch, moved=before):
                yield replace(passing, op=designed.op, moved=designed.moved)

    def _marked_too(self, designed: Designed) -> Iterator[Designed]:
        """The module made with another name for an option, and what is ignored among the indices:
        a mean leaves it out where a sum does not show it."""
        if designed.op is None or not any(isinstance(v, str) for v in designed.moved.values()):
            return
        for marked in marked_labels(designed.op, designed.sample):
            label = f"{designed.sample.label}, {marked.sample.label.removeprefix('with ')}"
            yield replace(
                marked,
                sample=replace(marked.sample, label=label),
                op=marked.op or designed.op,
                moved={**designed.moved, **marked.moved},
            )

    def _passing_by_parameters(
        self, op: Op, sample: Sample, watched: Comparisons
    ) -> Iterator[Designed]:
        """Larger parameters of a module, or such of the other sign, where something that is below a
        threshold passes it by that. Zero and an epsilon are none: they guard what parameters that
        were trained never come to."""
        wanted = {
            place: item
            for place, item in watched.compared.items()
            if item.side < 0 and item.threshold > EPSILON and item.middle
        }
        factors = {ABOVE * item.threshold / item.middle for item in wanted.values()}
        for factor in sorted(factors, key=abs)[:MOST_FACTORS]:
            made = with_larger_parameters(op, sample, factor) if abs(factor) < FARTHEST else None
            if made and passed_thresholds(wanted, self._watched(made.sample, op=made.op)):
                yield made

    def _watched(self, sample: Sample | None = None, op: Op | None = None) -> Comparisons | None:
        """What forward compares with and how it indexes, at the first sample or another one, in
        ``op`` or another form of it."""
        watched = Comparisons()
        return watched if self.forward_watched(watched, sample, op) else None

    def forward_watched(
        self,
        watched: AbstractContextManager[Any],
        sample: Sample | None = None,
        op: Op | None = None,
    ) -> bool:
        """Run forward under ``watched``, at the first sample or another one; whether it ran."""
        problem = self.subject.problem
        there = problem if sample is None else problem.at(sample)
        if op is not None:
            there = Subject(op, sample or self.subject.sample, self.subject.settings).problem
        elif self.subject.op.kind == "library":
            # What runs inside of a registered operator is not seen from outside.
            there = without_backward(self.subject, there) or there
        try:
            with watched:
                there.forward()
        except (OpRaised, RuntimeError):
            return False
        finally:
            if there is not problem:
                problem.forward_calls += there.forward_calls
        return True
