"""Which other sizes are tried, and the result of each."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import torch

from gradlint.base.clock import had_seconds
from gradlint.experiments.judge_at_other_inputs import (
    NOT_FINITE,
    RAISED,
    REFUSED,
    RIGHT,
    UNDECIDED,
    WRONG,
    JudgementElsewhere,
    affords_another,
    judge_at_other_inputs,
)
from gradlint.experiments.layout.chosen_sizes import affordable_sizes, twice_a_prime
from gradlint.experiments.layout.degenerate_sizes import is_degenerate
from gradlint.experiments.layout.documented_sizes import (
    documented_least_sizes,
    documented_numbers,
    documented_open_in_front,
    documented_orders,
    documented_products,
)
from gradlint.experiments.layout.meant_broadcasting import (
    is_said,
    is_said_or_handled,
    own_state_has,
)
from gradlint.experiments.layout.meant_odd_sizes import splits_in_halves
from gradlint.experiments.layout.sliced_axes import rest_was_one_element
from gradlint.experiments.layout.trailing_axes import Trailing, trailing_axes
from gradlint.experiments.layout.unread_axes import (
    leaves_others_unread,
    reads_all,
    unread_axes,
)
from gradlint.experiments.rounding_only import changes_as_much
from gradlint.experiments.shape.compared_gradients import reduces_to, returned_shapes
from gradlint.experiments.subject import Subject
from gradlint.experiments.watched_forward import watch_forward
from gradlint.inputs.described import said_of_arguments
from gradlint.inputs.documentation import (
    documented_ranks,
)
from gradlint.inputs.resized import (
    Axis,
    repeats_indices,
    resized,
    slice_of,
    tensors_of,
    tied_axes,
    trailing_slice_of,
    with_integers_of,
    with_leading_axis,
    with_trailing_axis,
    without_leading_axis,
)
from gradlint.model.report import SIZES_LEFT_OUT, Explanation
from gradlint.model.sample import Sample
from gradlint.numerics.products import widened
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem
from gradlint.trace.repeated_writes import RepeatedWrites

#: Integer arguments change with the sizes only up to this product: they may be a shape.
MOST_IN_SHAPE = 2**20

#: Share of ``--timeout`` after which no further sizes are tried.
SHARE_OF_TIMEOUT = 0.25

#: At most this many sizes of the sample are changed one at a time.
MOST_ALONE = 3

#: Slices of a batch that forward is run on one by one, at most, and the relative difference to the
#: whole batch that another order of summation may make (heuristic, far above it).
MOST_SLICES, SAME_VALUE = 11, 1e-4

#: Calls that it takes to tell rounding from a fault, for most ops (heuristic: four for each of
#: eight directions, about as many as a wrong gradient is measured along).
MOST_PULLS = 32

#: Size of an axis that is put in front, the first that no axis has (odd, so that rows stay odd in
#: number).
LEADING_SIZES = (3, 5, 7, 9, 11)

#: Sets of tensors that get such an axis in turn, at most (each costs a call of forward and one of
#: backward where it is no use).
MOST_LEADING = 4

#: Size of an axis that is put behind the others.
TRAILING_SIZE = 3

#: Hint on a fault at an odd size where the next even size is right.
RIGHT_WHERE_EVEN = "right where {even}: forward accepts an odd size where it needs two halves"

#: The engine's words on a gradient of another shape than its input's.
_REJECTED = re.compile(r"got (\[[\d, ]*\]) but expected shape(?: compatible with)? (\[[\d, ]*\])")

#: Verdicts that are faults.
FAULTS = (WRONG, RAISED, NOT_FINITE)


@dataclass
class SizeTrial:
    """One other shape.

    Args:
        words: what was changed.
        judgement: what was found there.
        sizes: old size → new size.
        batch: whether an axis of a batch was changed.
        carried: whether outputs have the axes that were changed.
        seen_in_outputs: whether a shape among the outputs changes with them.
        size_is_kept: whether backward raises at odd and even sizes alike, or returns a gradient of
            one shape there, which the engine rejects: only the sample's size is meant, and forward
            does not check it.
        other_function: whether forward computes another function there than at the sample.
        unmeant: whether forward broadcasts there with something of the op's own that keeps its
            size, or inputs that were guessed with each other, and nothing says that this is meant;
            or whether a rest of one element that broadcast at the sample has several.
        degenerate: whether forward runs out of the size there: a clamp to an empty range, an
            index that falls below zero, or a singular matrix that it solves with.
        rounding: whether what differs there is nothing but rounding error.
        documented: whether documentation says that such shapes are meant.
        length_guessed: whether backward raises there, and forward reads nothing of what was added
            to a guessed axis: another length may be meant.
        hint: what else was seen, in words; with one, the fault may come from a requirement that
            forward does not check.
    """

    words: str
    judgement: JudgementElsewhere
    sizes: dict[int, int] = field(default_factory=dict)
    batch: bool = False
    carried: bool = False
    seen_in_outputs: bool = False
    size_is_kept: bool = False
    other_function: bool = False
    unmeant: bool = False
    degenerate: bool = False
    rounding: bool = False
    documented: bool = False
    length_guessed: bool = False
    hint: str = ""

    @property
    def faulty(self) -> bool:
        """Whether the op fails there."""
        return self.judgement.verdict in FAULTS

    @property
    def explained(self) -> Explanation | None:
        """What else than a fault of backward explains that it fails there."""
        if self.degenerate or self.rounding:
            return "degenerate" if self.degenerate else "rounding"
        return "broadcast" if self.unmeant else None


class SizeTrials:
    """The op of ``subject`` at other sizes than the sample's.

    ``left_out`` says why not all were tried, and ``small`` why odd ones are smaller than usual;
    both are empty otherwise. ``unread`` are trials that failed because of axes of which forward
    does not read what was added; these keep their sizes from then on.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        numbered = documented_numbers(subject) | documented_products(subject)
        self.groups = {
            size: kept
            for size, axes in tied_axes(subject.sample).items()
            if (kept := [axis for axis in axes if axis not in numbered])
        }
        self._least, self._orders = documented_least_sizes(subject), documented_orders(subject)
        self.tried: list[SizeTrial] = []
        self.refused: list[str] = []
        self.unread: list[SizeTrial] = []
        self.left_out = self.small = ""
        self._leading_axis_is_right = False
        self._until = had_seconds() + SHARE_OF_TIMEOUT * subject.settings.timeout

    @property
    def late(self) -> bool:
        """Whether no further sizes are to be tried; :attr:`left_out` says why, from then on."""
        settings = self.subject.settings
        if had_seconds() >= self._until:
            share = f"{SHARE_OF_TIMEOUT:.0%} of --timeout {settings.timeout:g} are spent"
            self.left_out = f"{SIZES_LEFT_OUT}{share}"
        elif not affords_another(self.subject):
            self.left_out = f"{SIZES_LEFT_OUT}beyond --max-calls {settings.max_calls}"
        else:
            return False
        return True

    def alone(self, size: int) -> list[SizeTrial]:
        """Each size of the sample changed to ``size``, the others kept. Sizes that only
        indices or offsets have are not set to zero: an op that reads those unchecked would crash
        the process."""
        kept = [] if size else [old for old in self.groups if not self._of_values(old)]
        wanted = [old for old in self.groups if old not in kept]
        found = [self.changed({old: size}) for old in wanted[:MOST_ALONE]]
        return [item for item in found if item is not None]

    def _of_values(self, old: int) -> bool:
        tensors = tensors_of(self.subject.sample)
        kinds = (tensors[number] for number, _ in self.groups[old])
        return any(tensor.is_floating_point() or tensor.is_complex() for tensor in kinds)

    def odd(self) -> SizeTrial | None:
        """All sizes changed to odd ones at once; where that fails, or indices repeat, each alone,
        to find the one at fault; where forward refuses odd ones, even ones. Where the op is right
        with an axis in front too, that is not tried again."""
        sizes, self.small = affordable_sizes(self.subject, self.groups)
        if not sizes:
            return None
        leading = self._judge_with_leading_axis(
            resized(self.subject.sample, self._axes(sizes), seed=self.subject.seed)
        )
        if leading is not None and leading.judgement.verdict == RIGHT:
            self._leading_axis_is_right = True
            self.tried.append(leading)
            return leading
        found = self.changed(sizes)
        undecided = found is not None and found.judgement.verdict == UNDECIDED
        if found is not None and not found.faulty and not undecided:
            return found
        raised = found is not None and found.judgement.verdict == RAISED  # which costs one call
        for old in list(sizes)[: len(sizes) if raised else MOST_ALONE]:
            one = self.changed({old: sizes[old]}) if len(sizes) > 1 else found
            odd = one is not None
            one = one or self._in_place_of_odd(old, sizes[old])
            if one is not None and one.faulty:
                if odd and not one.batch:
                    self._compare_with_even(one, old, sizes[old])
                return one
        return found

    def _in_place_of_odd(self, old: int, odd: int) -> SizeTrial | None:
        """A size to which ``old`` can change where forward refuses ``odd``: an even one, where it
        splits an axis in halves, or the next one, where a parameter has half the size of it. One at
        which backward raises was accepted by accident."""
        for size in (twice_a_prime(odd), old + 1, old + 2):
            found = self.changed({old: size}) if not self.late else None
            if found is not None and found.judgement.verdict != RAISED:
                return found
            self.tried = [item for item in self.tried if item is not found]
        return None

    def _compare_with_even(self, one: SizeTrial, old: int, odd: int) -> None:
        """Tell what even sizes give in place of ``odd``, at which ``one`` was found faulty. A hint
        says that they are right; several are tried, since one may be right by chance. Code that
        halves nothing, and reads all elements at the odd size, needs no two halves."""
        even = self.changed({old: twice_a_prime(odd)})
        if even is None:
            return
        one.size_is_kept = _same_refusal(one.judgement, even.judgement)
        if even.judgement.verdict != RIGHT:
            return
        there = one.judgement.subject.sample
        if (
            one.judgement.verdict != RAISED
            and not splits_in_halves(self.subject)
            and reads_all(self.subject, there, self._axes({old: odd}))
        ):
            return
        others = (self.changed({old: odd + more}) for more in (1, 3, 5))
        if not any(other is not None and other.faulty for other in others):
            one.hint = RIGHT_WHERE_EVEN.format(even=even.words)

    def changed(self, sizes: dict[int, int]) -> SizeTrial | None:
        """All axes of old sizes changed to new ones. Integer arguments of these sizes change with
        them where the op refuses, or fails, without."""
        change = self._axes(sizes)
        if self._is_documented_otherwise(change):
            return None
        found: JudgementElsewhere | None = None
        words = ""
        unread: set[Axis] = set()
        for integers in (None, sizes) if _integers_may_change(self.subject, sizes) else (None,):
            sample = resized(self.subject.sample, change, seed=self.subject.seed, integers=integers)
            if sample is None or self.late:
                continue
            seen = self._judge(sample)
            if found is None or seen.verdict != REFUSED:
                found, words = seen, shape_words(self.subject, sample, change)
                unread = self._unread(seen, sample, change)
            if seen.verdict not in (REFUSED, *FAULTS):
                break
        if found is not None and unread:
            self._keep(unread, found)
            left = {old: new for old, new in sizes.items() if old in self.groups}
            return self.changed(left) if left else None
        if (
            found is not None
            and found.verdict == RAISED
            and not self.late
            and leaves_others_unread(self.subject, found.subject.sample, change)
        ):
            self.unread.append(SizeTrial(words, found))
            return None
        noted = self._noted(words, found)
        if noted is not None:
            _describe_axes(self.subject, noted, sizes)
            noted.unmeant = self._has_shape_of_another(noted) or (
                noted.judgement.verdict in (WRONG, NOT_FINITE)
                and (self._kept(noted) or self._is_constant(noted))
            )
            noted.length_guessed = self._is_guessed_length(noted, sizes)
            if noted.faulty:
                noted.unmeant |= rest_was_one_element(self.subject, noted.judgement.subject.sample)
                noted.degenerate = is_degenerate(self.subject, noted.judgement.subject.sample)
                noted.rounding = self._is_rounding(noted.judgement)
        return noted

    def _is_documented_otherwise(self, change: dict[Axis, int]) -> bool:
        """Whether documentation excludes these sizes: too small, or longer than another one."""
        tensors = tensors_of(self.subject.sample)

        def size(axis: Axis) -> int:
            return change.get(axis, tensors[axis[0]].shape[axis[1]])

        return any(size < self._least.get(axis, 0) for axis, size in change.items()) or any(
            size(shorter) > size(longer)
            for shorter, longer in self._orders
            if shorter in change or longer in change
        )

    def _is_rounding(self, seen: JudgementElsewhere) -> bool:
        """Whether every gradient that is wrong changes as much by rounding alone."""
        decision = seen.decision
        if seen.verdict != WRONG or decision is None or not self.subject.affords(MOST_PULLS):
            return False
        pulled = seen.subject.problem.backward_calls
        found = all(changes_as_much(decision, position) for position in seen.positions)
        self.subject.problem.backward_calls += seen.subject.problem.backward_calls - pulled
        return found

    def _is_constant(self, item: SizeTrial) -> bool:
        """Whether size 1 is taken, and no other, in place of one that all inputs keep together: the
        three of a vector in space, which a single number broadcasts with."""
        alone = set(item.sizes.values()) == {1} and not is_said(self.subject)
        return alone and self.broadcast(item)

    def _has_shape_of_another(self, item: SizeTrial) -> bool:
        """Whether the gradient that the engine rejects has the shape of another input, which
        forward broadcasts: the inputs were guessed, and the two may be meant to have one shape. At
        the sample, the engine summed the gradient of that one."""
        if item.judgement.verdict != RAISED or self.subject.sample.origin != "inferred":
            return False
        found = _REJECTED.search(str(item.judgement.error and item.judgement.error.error))
        if found is None:
            return False
        got, wanted = (tuple(map(int, re.findall(r"\d+", part))) for part in found.groups())
        shapes, _ = returned_shapes(self.subject)
        summed = {own for _, shape, own in shapes if shape != own and reduces_to(shape, own)}
        return got in summed and math.prod(got) != math.prod(wanted)

    def _kept(self, item: SizeTrial) -> bool:
        """Whether forward broadcast with something of the op's own: outputs keep a size though all
        axes of that size became one of size 1, and they keep their shape as a whole, or a tensor
        of the op's own has that size."""
        after = {output.name: output.value.shape for output in item.judgement.outputs}
        shapes = [(o.value.shape, after.get(o.name)) for o in self.subject.run.outputs]
        stays = any(
            old == one == other
            for old in item.sizes
            for shape, now in shapes
            if now is not None and len(now) == len(shape)
            for one, other in zip(shape, now, strict=True)
        )
        own = any(own_state_has(self.subject, old) for old in item.sizes)
        kept = (own and stays) or ((own or stays) and not item.seen_in_outputs)
        if set(item.sizes.values()) != {1}:
            kept = False
        if not kept:
            return False
        inputs = self.subject.problem.inputs
        wrong = [inputs[k].name for k in item.judgement.positions]
        return not all(is_said_or_handled(self.subject, [name]) for name in wrong)

    def _unread(
        self, seen: JudgementElsewhere, sample: Sample, change: dict[Axis, int]
    ) -> set[Axis]:
        """The axes that explain a fault, because forward does not read what was added: backward
        raises, or gives such elements a gradient."""
        if seen.verdict not in (RAISED, WRONG) or self.late:
            return set()
        unread = unread_axes(self.subject, sample, change)
        if seen.verdict == WRONG:
            names = [name for name, _ in sample.named_tensors(self.subject.op.signature)]
            lone = {names[number] for number, _ in unread}
            inputs = self.subject.problem.inputs
            if not {inputs[position].name for position in seen.positions} <= lone:
                return set()
            if not all(
                self._reaches_added(seen, position, unread, names) for position in seen.positions
            ):
                return set()
        return unread

    def _reaches_added(
        self, seen: JudgementElsewhere, position: int, unread: set[Axis], names: Sequence[str]
    ) -> bool:
        """Whether backward gives elements beyond those of the sample a gradient, for an input."""
        gradient = seen.gradients[position]
        name = seen.subject.problem.inputs[position].name
        before = tensors_of(self.subject.sample)
        return gradient is not None and any(
            names[number] == name
            and bool(gradient.movedim(axis, 0)[before[number].shape[axis] :].any())
            for number, axis in unread
        )

    def _is_guessed_length(self, item: SizeTrial, sizes: dict[int, int]) -> bool:
        """Whether backward raises where a guessed axis grew by elements that forward ignores, as it
        may ignore some that the sample has: a quaternion with a scale, taken for its rotation."""
        if item.judgement.verdict != RAISED or self.subject.sample.origin != "inferred":
            return False
        sample, change = item.judgement.subject.sample, self._axes(sizes)
        return bool(unread_axes(self.subject, sample, change, to_the_end=False))

    def _keep(self, axes: set[Axis], seen: JudgementElsewhere) -> None:
        """From now on, ``axes`` keep their size."""
        sample = seen.subject.sample
        words = shape_words(self.subject, sample, dict.fromkeys(axes, 0))
        self.unread.append(SizeTrial(words, seen))
        for size, group in list(self.groups.items()):
            self.groups[size] = [axis for axis in group if axis not in axes]
            if not self.groups[size]:
                del self.groups[size]

    def broadcast(self, item: SizeTrial) -> bool:
        """Whether forward takes the sizes of ``item``, and no others in place of the sample's."""
        return all(self.changed({old: twice_a_prime(old)}) is None for old in item.sizes)

    def raises_where_carried(self, item: SizeTrial) -> bool:
        """Whether backward raises with an axis changed that outputs have. Axes that have one size
        by chance are told apart: forward takes them changed one by one."""
        if item.judgement.verdict != RAISED or not (item.batch or item.carried):
            return False
        together = [
            (axis, old)
            for old in item.sizes
            for axis in self.groups.get(old, ())
            if len(self.groups[old]) > 1
        ]
        apart = [self._one_axis(axis, old, item.sizes[old]) for axis, old in together]
        accepted = [one for one in apart if one is not None]
        return not accepted or any(
            one.judgement.verdict == RAISED and (one.batch or one.carried) for one in accepted
        )

    def _one_axis(self, axis: Axis, old: int, new: int) -> SizeTrial | None:
        """One axis changed, and no other of its size; None where forward refuses that."""
        change = {axis: new}
        sample = resized(self.subject.sample, change, seed=self.subject.seed)
        if sample is None or self.late:
            return None
        tried = SizeTrial(shape_words(self.subject, sample, change), self._judge(sample))
        if tried.judgement.verdict == REFUSED:
            return None
        _describe_axes(self.subject, tried, {old: new})
        return None if tried.judgement.verdict == REFUSED else tried

    def ranks(self) -> list[SizeTrial]:
        """Tensors that share their first axis, with another axis in front, or without that axis."""
        sample, leading = self.subject.sample, self._leading()
        found = [None if self._leading_axis_is_right else self.with_leading_axis_added()]
        if leading and not self.late and not self._documented_otherwise(leading, -1):
            less = without_leading_axis(sample, leading)
            found.append(self._ranked(less, leading))
        tried = [item for item in found if item is not None and item.judgement.verdict != REFUSED]
        self.tried += tried
        return tried

    def with_leading_axis_added(self, leading: Sequence[int] | None = None) -> SizeTrial | None:
        """The sample with an axis in front of the tensors ``leading``."""
        return self._judge_with_leading_axis(self.subject.sample, leading)

    def leading_choices(self) -> list[list[int]]:
        """Tensors that may have an axis more in front: those that share their first axis; those
        that documentation gives any number of axes in front, as in "points (..., 3)"; and those
        alone of which an output has the first axis."""
        tensors = tensors_of(self.subject.sample)
        carried = {
            output.value.shape[0] for output in self.subject.run.outputs if output.value.dim()
        }
        alone = [
            [number]
            for number, tensor in enumerate(tensors)
            if tensor.requires_grad and tensor.dim() and tensor.shape[0] in carried
        ]
        found: list[list[int]] = []
        for choice in (self._leading(), documented_open_in_front(self.subject), *alone):
            if choice and choice not in found:
                found.append(choice)
        return found[:MOST_LEADING]

    def sample_with_leading_axis(
        self, sample: Sample | None, leading: Sequence[int] | None = None
    ) -> Sample | None:
        """``sample`` with an axis in front of the tensors ``leading``, or else of those that share
        their first axis; None where none fits, or time is up."""
        leading = self._leading() if leading is None else leading
        if sample is None or not leading or self.late or self._documented_otherwise(leading, 1):
            return None
        taken = {size for tensor in tensors_of(sample) for size in tensor.shape}
        size = next((size for size in LEADING_SIZES if size not in taken), LEADING_SIZES[0])
        return with_leading_axis(sample, leading, size, seed=self.subject.seed)

    def _judge_with_leading_axis(
        self, sample: Sample | None, leading: Sequence[int] | None = None
    ) -> SizeTrial | None:
        leading = self._leading() if leading is None else leading
        found = self.sample_with_leading_axis(sample, leading)
        return None if found is None else self._ranked(found, leading)

    def _ranked(self, sample: Sample, leading: Collection[int]) -> SizeTrial:
        words = shape_words(self.subject, sample, {(number, 0): 0 for number in leading})
        tried = SizeTrial(words, self._judge(sample))
        if tried.faulty and self._rank_is_kept(tried):
            tried.judgement.verdict = UNDECIDED
        tried.other_function = tried.faulty and self._computes_otherwise(sample, leading)
        return tried

    def _computes_otherwise(self, sample: Sample, leading: Collection[int]) -> bool:
        """Whether forward does not take the additional axis for a batch: what it returns for all
        slices is neither what it returns for each, nor the sum or the mean of these."""
        batch, alone = sample, self.subject.sample
        if any(tensors_of(batch)[k].dim() < tensors_of(alone)[k].dim() for k in leading):
            batch, alone = alone, batch
        count = tensors_of(batch)[next(iter(leading))].shape[0]
        slices = [slice_of(batch, leading, number) for number in range(min(count, MOST_SLICES))]
        together = self._outputs(batch)
        apart = [self._outputs(one) for one in slices]
        if together is None or not count or len(slices) < count or None in apart:
            return False
        for position, whole in enumerate(together):
            parts = torch.stack([one[position] for one in apart if one is not None])
            forms = (parts, parts.sum(0), parts.mean(0))
            if not any(_agree(whole, form) for form in forms):
                return True
        return False

    def _outputs(self, sample: Sample) -> list[torch.Tensor] | None:
        problem = self.subject.problem.at(sample)
        try:
            found = problem.forward()
        except OpRaised:
            return None
        finally:
            self.subject.problem.forward_calls += problem.forward_calls
        return [item.value for item in found if item.value.is_floating_point()]

    def _rank_is_kept(self, tried: SizeTrial) -> bool:
        """Whether an output that has the first axis of the inputs keeps its number of axes where
        they change theirs: it was broadcast with a tensor that did not change, by accident."""
        tensors = tensors_of(self.subject.sample)
        first = {tensors[number].shape[0] for number in self._leading()}
        after = {item.name: item.value.dim() for item in tried.judgement.outputs}
        before = [item for item in self.subject.run.outputs if item.value.shape[:1]]
        return any(
            item.value.shape[0] in first and after.get(item.name) == item.value.dim()
            for item in before
        )

    def as_documented(self) -> list[SizeTrial]:
        """The sample with an axis in front of each tensor that has one less than documentation
        gives it: backward may have failed with as many, which made inputs be guessed otherwise."""
        sample = self.subject.sample
        known = said_of_arguments(self.subject.op)
        order = {id(tensor): number for number, tensor in enumerate(tensors_of(sample))}
        numbers = {
            order[id(tensor)]
            for name, tensor in sample.named_tensors(self.subject.op.signature)
            if (item := known.get(name)) and not item.other and item.rank == tensor.dim() + 1
        }
        if sample.origin != "inferred" or not numbers or self.late:
            return []
        there = with_leading_axis(sample, numbers, LEADING_SIZES[0], seed=self.subject.seed)
        words = shape_words(self.subject, there, {(number, 0): 0 for number in numbers})
        tried = SizeTrial(words, self._judge(there), documented=True)
        if tried.judgement.verdict == REFUSED:
            return []
        self.tried.append(tried)
        return [tried]

    def trailing(self) -> list[SizeTrial]:
        """A tensor of which forward or documentation says that it has any number of axes behind the
        first ones, with one more of them, and with one less; those of its shape change with it."""
        known = trailing_axes(self.subject)
        if known is None:
            return []
        sample, numbers = self.subject.sample, known.alike
        documented = any(self._documented_otherwise(numbers, more) for more in (1, -1))
        if documented and not known.documented:
            return []
        more = with_trailing_axis(sample, numbers, TRAILING_SIZE, seed=self.subject.seed)
        others = [(more, more, sample)]
        if known.counted and known.first < tensors_of(sample)[known.number].dim():
            less = trailing_slice_of(sample, numbers, 0)
            others.append((less, sample, less))
        found = []
        for there, longer, shorter in others:
            if self.late:
                break
            tried = self._with_other_trailing(there, longer, shorter, numbers, known)
            if tried.judgement.verdict != REFUSED:
                found.append(tried)
        self.tried += found
        return found

    def _with_other_trailing(
        self,
        there: Sample,
        longer: Sample,
        shorter: Sample,
        numbers: Sequence[int],
        known: Trailing,
    ) -> SizeTrial:
        """The trial at ``there``, which is either the one with the longer shapes or the other."""
        words = shape_words(self.subject, there, {(number, 0): 0 for number in numbers})
        tried = SizeTrial(words, self._judge(there))
        if not tried.faulty:
            return tried
        # A mean over no axes at all is one over all of them.
        certain = known.counted and there is longer
        raised = tried.judgement.verdict == RAISED
        if not certain and (raised or not self._treats_slices_alike(longer, shorter, numbers)):
            tried.judgement.verdict = UNDECIDED
        tried.documented = known.documented
        return tried

    def _treats_slices_alike(self, longer: Sample, shorter: Sample, numbers: Sequence[int]) -> bool:
        """Whether forward returns for ``longer`` what it returns for each slice of it along the
        last axis, of which ``shorter`` has none."""
        together = self._outputs(longer)
        count = tensors_of(longer)[numbers[0]].shape[-1]
        apart = [self._outputs(trailing_slice_of(longer, numbers, k)) for k in range(count)]
        rows = [one for one in apart if one is not None]
        if together is None or len(rows) < count or self._outputs(shorter) is None:
            return False
        return all(
            _agree(whole, torch.stack([row[position] for row in rows], -1))
            for position, whole in enumerate(together)
        )

    def _documented_otherwise(self, leading: Collection[int], more: int) -> bool:
        """Whether the documentation gives a number of axes for tensors like those of ``leading``,
        and another one than with ``more`` axes."""
        tensors = tensors_of(self.subject.sample)
        now = max(tensors[number].dim() for number in leading)
        known = said_of_arguments(self.subject.op)
        for name, tensor in self.subject.sample.named_tensors(self.subject.op.signature):
            item = known.get(name)
            if item is None or not any(tensor is tensors[number] for number in leading):
                continue
            if item.rank == tensor.dim() and not item.other:
                return True
        documented = documented_ranks(self.subject.op)
        return now in documented and now + more not in documented

    def _judge(self, sample: Sample) -> JudgementElsewhere:
        seen = judge_at_other_inputs(self.subject, sample)
        if seen.verdict == WRONG and (
            repeats_indices(self.subject.sample, sample) or self._writes_twice(sample)
        ):
            seen.verdict = UNDECIDED
        if seen.verdict == WRONG:
            same = with_integers_of(self.subject.sample, sample)
            # Integers may be bounds, offsets or counts that fit no other sizes.
            if same is not None and judge_at_other_inputs(self.subject, same).verdict != WRONG:
                seen.verdict = UNDECIDED
        return seen

    def _writes_twice(self, sample: Sample) -> bool:
        """Whether forward puts several values in one place at ``sample``, and at the subject's own
        does not: which of them stays is not defined, and no two cells may be meant to be alike."""

        def repeats(problem: Problem) -> bool:
            watched = RepeatedWrites()
            return watch_forward(self.subject, watched, problem) and watched.found

        problem = self.subject.problem
        return repeats(problem.at(sample)) and not repeats(problem)

    def _leading(self) -> list[int]:
        """The tensors that share the first axis of the first one that requires grad."""
        tensors = tensors_of(self.subject.sample)
        first = next((t for t in tensors if t.requires_grad and t.dim()), None)
        if first is None:
            return []
        return [k for k, t in enumerate(tensors) if t.dim() and t.shape[0] == first.shape[0]]

    def _axes(self, sizes: dict[int, int]) -> dict[Axis, int]:
        return {axis: new for old, new in sizes.items() for axis in self.groups.get(old, ())}

    def _noted(self, words: str, found: JudgementElsewhere | None) -> SizeTrial | None:
        if found is None:
            return None
        if found.verdict == REFUSED:
            self.refused.append(words)
            return None
        tried = SizeTrial(words, found)
        self.tried.append(tried)
        return tried


def _agree(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape:
        return False
    return torch.allclose(widened(one), widened(other), rtol=SAME_VALUE, atol=0.0, equal_nan=True)


def _same_refusal(odd: JudgementElsewhere, even: JudgementElsewhere) -> bool:
    """Whether backward raises at both: in its own code, or because the engine rejects a gradient
    that has the same shape there."""
    if not odd.verdict == even.verdict == RAISED:
        return False
    shapes = [re.search(_REJECTED, str(seen.error and seen.error.error)) for seen in (odd, even)]
    if any(shapes):
        return all(shapes) and len({found.group(1) for found in shapes if found}) == 1
    return True


def _describe_axes(subject: Subject, tried: SizeTrial, sizes: dict[int, int]) -> None:
    """Record what the changed axes are; a size that outputs keep was broadcast, not taken."""
    tried.sizes = sizes
    before = {item.name: item.value.shape for item in subject.run.outputs}
    after = {item.name: item.value.shape for item in tried.judgement.outputs}
    pairs = [
        (old, now)
        for name, shape in before.items()
        if name in after and len(after[name]) == len(shape)
        for old, now in zip(shape, after[name], strict=True)
        if old in sizes
    ]
    tried.seen_in_outputs = any(after.get(name, shape) != shape for name, shape in before.items())
    tried.carried = bool(pairs) and all(sizes[old] == now for old, now in pairs)
    if any(old == now for old, now in pairs) and tried.judgement.verdict == RAISED:
        tried.judgement.verdict = REFUSED
    first = next((item.value for item in subject.problem.inputs if item.value.dim()), None)
    if first is not None and first.shape[0] in sizes:
        leading = [shape[:1] for shape in before.values()]
        tried.batch = any(not size or size[0] == first.shape[0] for size in leading)


def _integers_may_change(subject: Subject, sizes: dict[int, int]) -> bool:
    """Whether integer arguments are equal to old sizes, and can change with them."""
    found, product = False, 1
    for _, value in subject.arguments():
        if type(value) is int:
            found = found or value in sizes
            product *= max(abs(sizes.get(value, value)), 1)
    return found and product <= MOST_IN_SHAPE


def shape_words(subject: Subject, sample: Sample, change: dict[Axis, int]) -> str:
    """The changed tensors with their shapes in words: "`x` has shape [1, 3]"."""
    changed = {number for number, _ in change}
    names: dict[int, str] = {}
    order = {id(tensor): number for number, tensor in enumerate(tensors_of(sample))}
    for name, tensor in sample.named_tensors(subject.op.signature):
        names.setdefault(order[id(tensor)], f"`{name}` has shape {list(tensor.shape)}")
    shown = [words for number, words in sorted(names.items()) if number in changed]
    return " and ".join(shown[:3])
