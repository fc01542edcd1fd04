"""Best-first search for a plan under which the op runs.

The queue is ordered by cost: how unlikely the guesses are, plus the price of every move away from
the likeliest plan, minus a bonus where a move let more of forward run. Moves come from error texts
and failed conditions; where these lead nowhere, the remaining guesses are tried.
"""

from __future__ import annotations

import heapq
import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from operator import itemgetter

from gradlint.base.clock import had_seconds
from gradlint.diagnosis.engine_errors import BESIDE_THE_INPUTS, explain_text
from gradlint.inputs import _names
from gradlint.inputs._attempt import GRADIENT_SHAPE_ERROR, Failure, Trial, attempt
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._examples import example_plans
from gradlint.inputs._frames import FailedAttempt, unmet
from gradlint.inputs._gather import has_imaginary
from gradlint.inputs._gradient_repairs import as_real, keeps_axes, summed
from gradlint.inputs._made_with import plans_of_constructor
from gradlint.inputs._moves import (
    SQUARE_COST,
    fewer_indices,
    like_returned,
    made_wide,
    other_ranks,
    rank_of,
    with_rank,
    with_unequal_members,
    without_batch,
    without_own_axes,
)
from gradlint.inputs._ordered_numbers import in_order
from gradlint.inputs._own_blocks import called_parts, plans_of_blocks
from gradlint.inputs._plan import (
    OTHER_SIZES,
    GroupGuess,
    Guess,
    Plan,
    Related,
    TensorGuess,
    ValueGuess,
)
from gradlint.inputs._proposals import Proposal, first_plan
from gradlint.inputs._recurrences import plans_of_recurrences
from gradlint.inputs._repairs import repairs
from gradlint.inputs._sparse_parts import plans_of_sparse_parts
from gradlint.inputs.documentation import documented_complex, documented_real, prose
from gradlint.inputs.domains import DOMAINS, OF_SQUARES
from gradlint.inputs.needed import Need, needed
from gradlint.model.op import Op
from gradlint.model.related import LETTERS

#: Attempts and seconds spent at most (heuristic: 180 published Functions needed under 300). Seconds
#: are CPU seconds or elapsed ones, whichever are fewer: the result must depend neither on what else
#: the machine does nor on how many threads an op has.
ATTEMPTS = 500
SECONDS = 2.5
#: Such seconds as long as nothing has run: on a slow machine all attempts fit in, so that it finds
#: what a fast one does.
SECONDS_UNTIL_FOUND = 8.0
#: Elapsed seconds after which even a handful of slow attempts is enough.
PATIENT_SECONDS = 15.0
#: Elements that a tensor may have during the search (heuristic: sizes that errors ask for multiply,
#: and a matrix of 175⁴ elements took 20 s to be refused).
MOST_ELEMENTS = 2_000_000
#: After so many attempts that all raised the same error, the inputs are not at fault.
HOPELESS = 100
#: Likewise after so many, where the first attempt, and none that got further, was refused by what
#: the op needs beside its arguments: a file, a server, a package, a GPU. Each may take a time-out.
NEEDS_MORE = 12
#: Likewise after so many where those that got furthest lacked a compiled extension or a GPU: the
#: first number where the line that raised is reached whatever the arguments are, the second where
#: other arguments might lead around it.
LACKING, LACKING_ON_ONE_WAY = 3, 40
#: As many of these must have been alike in kind, where no two differed in it.
LACKING_ALIKE = 4
#: Attempts still made in the hope of a better score, by the best score so far.
_PATIENCE = {1: 40, 2: 40, 3: 24, 4: 14, 5: 6}
#: Likewise where all went well, but the engine had to sum a gradient to the shape of its input:
#: forward may have broadcast by accident.
_PATIENCE_REDUCED = 16
#: Cost of numbers beside a series, where nothing has failed yet (heuristic: less than to give all
#: tensors one shape).
_OF_NUMBERS = 0.5
#: How much more a plan may cost that is preferred only because backward goes better with it.
_MOST_EXTRA_COST = 1.3
#: Plans whose costs differ by at most this are about as likely. Less than a move costs, so that a
#: plan that answers an error of forward is never dropped in favour of one with equal shapes.
_AS_LIKELY = 0.15
#: Bonus for a plan under which forward got further than under the one it came from.
_BONUS = 0.25
#: Bonus for a plan under which less is missing of a condition: what such a move costs at least.
_NEARER = 0.1

#: What each tensor costs that has fewer axes than the code reads, as a vector that is transposed:
#: forward may run for it, by accident (heuristic: as much as a square matrix).
BELOW_RANK_COST = SQUARE_COST

#: What it costs to give a tensor a number of axes for which the code has a case of its own: less
#: than any other number of axes.
NAMED_RANK_COST = 0.3

#: What it costs to let the elements of a vector increase, where outputs are not finite (heuristic:
#: as much as the domains that most need).
CUTPOINTS_COST = 0.3
#: What it costs to let all numbers be of about one size, as the sides of triangles are (heuristic:
#: more than any domain that is usual).
ALIKE_COST = 1.5

#: What it costs to give a matrix fewer rows than columns, where outputs are not finite (heuristic:
#: more than a domain that the code mentions, less than what nothing suggests).
WIDE_COST = 0.3

#: Elements of each part of an axis that is taken apart in turn.
EACH_PART = 3

#: Integers of which none are alike: fewer than the smallest size of an axis, which they index.
FEW_UNLIKE = 2

#: The largest size that an axis is given because backward raises (heuristic: sizes of the search
#: are up to 25, and backward has hardly a larger one in its code; a view with a wrong size asked
#: for the number of all elements, 210).
MOST_ASKED = 64

#: Domains of which all values have one sign.
OF_ONE_SIGN = frozenset({"positive", "negative", "unit", "above"})

#: Domains that are tried only where something asks for them: hardly any op needs them because of
#: values that are not finite.
_SPECIAL = frozenset({"ordered", "logs", "corners"} | OF_SQUARES - {"spd"})

#: Errors of forward about shapes (a stack of matrices that was not meant may not be positive
#: definite), and what it then costs more to give all tensors another rank.
_SHAPES = re.compile(r"(?i)shape|size|dimension|factorization could not be completed")
_FORWARD_RANKS = 0.9

#: Errors of backward for an input that has too few axes, and for one that should be a number.
_TOO_FEW_AXES = re.compile(
    r"too many indices|to unpack|Dimension out of range|number of dimensions"
)
_SHOULD_BE_SCALAR = re.compile(
    r"cannot be converted to Scalar|only one element|single element|^expand\(.*, size=\[\]\)"
    r"|shape '\[[\d, ]+\]' is invalid for input of size 1$"
)


@dataclass
class Found:
    """A plan that works, and its trial."""

    plan: Plan
    trial: Trial


@dataclass
class _Candidate:
    """An entry of the queue.

    Args:
        plan: the plan to try.
        bonus: what the moves that led to it were worth.
        reach: how far forward got under the plan that it was derived from.
        text: that plan's error.
        kin: whether forward ran under a plan that it was derived from.
        forced: number of tensors that got equal sizes because forward asked for them.
        unmet: how much was missing until the conditions held that stopped that plan; None where
            no condition did.
        backward: how far backward got under that plan, where forward ran.
        squares: number of matrices that the move made square.
    """

    plan: Plan
    bonus: float = 0.0
    reach: tuple[int, ...] = ()
    text: str = ""
    kin: bool = False
    forced: int = 0
    unmet: int | None = None
    backward: tuple[float, ...] = ()
    squares: int = 0


class Search:
    """One search; :meth:`run` gives the best plan, or None with ``failures`` filled.

    ``cut_short`` says whether anything was left untried because time ran out, ``held`` which axes
    must keep their size because the op reads their elements one by one, ``free_of_sign`` of which
    tensors forward takes values of both signs, ``beyond_one`` of which it takes values above one.
    """

    def __init__(
        self, op: Op, evidence: list[Evidence], proposals: dict[str, list[Proposal]], seed: int
    ) -> None:
        self.op = op
        self.evidence = {item.name: item for item in evidence}
        self.keywords = frozenset(item.name for item in evidence if item.passing == "keyword")
        self.proposals = proposals
        #: Of what forward calls all parts: without any it does nothing.
        self._parts = called_parts(op)
        #: Plans with numbers beside a series, for when backward raises with other shapes.
        self._series: list[Plan] = []
        #: Whether there are functions to pass as these parts.
        self._called = False
        self.seed = seed
        self.failures: list[tuple[Plan, Trial]] = []
        self.attempts = 0
        self.cut_short = False
        self.held: set[str] = set()
        text = prose(op.defining) if op.defining is not None else ""
        self._complex = documented_complex(text)
        # A real argument beside others, where forward computes with imaginary numbers.
        self._real = documented_real(text) and not has_imaginary(op)
        self._mentioned = [domain for item in evidence for domain in item.mentioned]
        self._started = had_seconds(), time.process_time()
        self._queue: list[tuple[float, int, _Candidate]] = []
        self._patterns: set[str] = set()
        self._order = itertools.count()
        self._seen: set[object] = set()
        #: Of each failure: type and text without numbers, and what was missing of a condition.
        self._refusals: list[tuple[str, str, int | None]] = []
        self._last_failed: FailedAttempt | None = None
        #: What attempts lacked beside their arguments, with how far they got; the kinds of these
        #: arguments; and how far any attempt got.
        self._needs: list[tuple[tuple[int, ...], Need]] = []
        self._kinds: set[object] = set()
        self._furthest: tuple[int, ...] = ()
        self.free_of_sign: set[str] = set()
        self.beyond_one: set[str] = set()

    def run(self) -> Found | None:
        """The best plan within the budget."""
        self._start()
        best: tuple[Plan, Trial] | None = None
        patience = ATTEMPTS
        while self._queue and self.attempts < ATTEMPTS and patience > 0:
            most_s = SECONDS_UNTIL_FOUND if best is None else SECONDS
            if self.wall_s > PATIENT_SECONDS or (self.spent_s > most_s and self.attempts >= 12):
                self.cut_short = True
                break
            if best is None and (self._is_lacking() or self._hopeless()):
                break
            _, _, node = heapq.heappop(self._queue)
            linked = with_linked_permutations(node.plan)
            plan = node.plan = with_one_for_each(linked, self.evidence)
            if plan.arguments_key() in self._seen or _elements(plan) > MOST_ELEMENTS:
                continue
            self._seen.add(plan.arguments_key())
            trial = _by_accident(plan, attempt(self.op, plan, self.seed, self.keywords))
            self.attempts += 1
            patience -= 1
            if trial.score == 0:
                self.failures.append((plan, trial))
                self._note_need(plan, trial)
            elif best is None or _better(node, trial, *best, self.evidence):
                self._take_time(first=best is None)
                best = plan, trial
                patience = _PATIENCE.get(trial.score, _PATIENCE_REDUCED)
                if (trial.score == 6 and not trial.reduced and not trial.real) or trial.contract:
                    break
            missing = self._missing(plan, trial)
            bonus = node.bonus + self._gain(node, trial, missing)
            if best is not None and best[0] is plan:
                # Forward takes these inputs: repairs of them come before any other inputs.
                bonus = max(bonus, plan.cost)
            reach = max(trial.progress, node.reach)
            kin = node.kin or trial.score >= 3
            text = str(trial.failure) if trial.failure else ""
            for child in self._children(plan, trial, best):
                if self._real and _complex(child) > _complex(plan):
                    continue
                more = max(child.squares() - plan.squares(), 0) if trial.score == 0 else 0
                forced = node.forced + more
                derived = _Candidate(child, bonus, reach, text, kin, forced, missing)
                derived.backward, derived.squares = _reach_of_backward(trial), more
                self._push(derived)
        if best is None:
            return None
        return Found(*best)

    def _start(self) -> None:
        """Fill the queue: the likeliest plan, calls that the source shows, a few alternatives."""
        first = in_order(first_plan(self.op, self.proposals), self.evidence)
        first = _in_step(first, self.evidence)
        bounds = dict.fromkeys(b for item in self.evidence.values() for b in item.bounds)
        unlike = tuple((k, v.unlike) for k, v in self.evidence.items() if v.unlike)
        beyond = frozenset(k.partition(".")[0] for k, v in self.evidence.items() if v.beyond)
        first = replace(_few_unlike(first, unlike), bounds=tuple(bounds), beyond=beyond)
        examples = example_plans(self.op, list(self.evidence.values()), first, self.seed)
        made_with = plans_of_constructor(self.op, self.evidence, first)
        blocks = list(plans_of_blocks(self.op, first))
        self._called = bool(blocks)
        sparse = plans_of_sparse_parts(self.op, first)
        self._series = list(plans_of_recurrences(self.op, self.evidence, first))
        series = [replace(plan, cost=plan.cost + _OF_NUMBERS) for plan in self._series]
        found = (first, *examples, *made_with, *blocks, *sparse, *series, *_alternatives(first))
        for plan in found:
            self._push(_Candidate(plan))

    def _hopeless(self) -> bool:
        """Whether every attempt raised the same error, numbers aside, and none came nearer; or the
        op needs something beside its arguments."""
        first = self.failures[0][1] if self.failures else None
        if self.attempts < NEEDS_MORE:
            return False
        if first is not None and _needs_more(first):
            return all(trial.progress <= first.progress for _, trial in self.failures)
        if self.attempts < HOPELESS:
            return False
        return len(set(self._refusals[-HOPELESS:])) == 1

    def _note_need(self, plan: Plan, trial: Trial) -> None:
        """Note what an attempt lacked beside its arguments, if it got as far as any other."""
        # By instructions alone: a call that takes several lines is made on the first of them, after
        # its arguments were computed on the others.
        reached = trial.progress[1::2] or trial.progress
        self._furthest = max(self._furthest, reached)
        need = needed(trial.failure) if trial.failure is not None else None
        if need is not None:
            self._needs.append((reached, need))
            self._kinds.add(_kinds(plan))

    def _is_lacking(self) -> bool:
        """Whether so many attempts have shown what the op lacks that no arguments will help."""
        if self.need is None or (len(self._kinds) < 2 and len(self._needs) < LACKING_ALIKE):
            return False
        sure = all(need.sure for _, need in self._needs)
        return self.attempts >= (LACKING if sure else LACKING_ON_ONE_WAY)

    @property
    def need(self) -> Need | None:
        """What the op lacks beside its arguments, where no attempt got further than those that
        showed it."""
        progress, need = max(self._needs, key=itemgetter(0), default=((), None))
        return need if progress == self._furthest else None

    def narrowed(self, plan: Plan) -> Iterator[str]:
        """The tensors whose values have one sign in ``plan`` for the sake of backward, or of what
        other tensors hold: nothing says so, and forward is finite at other values, too."""
        said = any(domain in OF_ONE_SIGN for domain in self._mentioned)
        for name, guess in plan.tensors():
            free = self.beyond_one if guess.domain == "unit" else self.free_of_sign
            if guess.domain in OF_ONE_SIGN and name in free and not said:
                yield name

    def as_good(self, plan: Plan, known: Trial) -> Trial | None:
        """The trial of ``plan`` if it is as good as ``known``."""
        trial = attempt(self.op, plan, self.seed, self.keywords)
        self.attempts += 1
        good = trial.score >= known.score and trial.zero <= known.zero
        return trial if good else None

    def _take_time(self, *, first: bool) -> None:
        """Count time anew where the first inputs took long to find: what reveals more takes its
        own."""
        if first and self.spent_s > SECONDS:
            self.restart()

    def restart(self) -> None:
        """Count time anew."""
        self._started = had_seconds(), time.process_time()

    @property
    def wall_s(self) -> float:
        """Seconds since the search began, less those in which it waited for a processor."""
        return had_seconds() - self._started[0]

    @property
    def spent_s(self) -> float:
        """Seconds that the search itself took: of the CPU, at most those elapsed."""
        return min(self.wall_s, time.process_time() - self._started[1])

    @property
    def out_of_time(self) -> bool:
        """Whether the op is so slow that only what is necessary should still be tried."""
        late = self.spent_s > 2 * SECONDS or self.wall_s > PATIENT_SECONDS
        self.cut_short = self.cut_short or late
        return late

    def repair(self, plan: Plan, attempts: int = 30, *, square: bool = False) -> Found | None:
        """A plan near ``plan`` under which everything goes well, found by repairs alone.

        Args:
            square: whether forward may ask for a square matrix.
        """
        queue = [(plan.cost, next(self._order), plan)]
        seen: set[object] = set()
        while queue and attempts > 0:
            _, _, current = heapq.heappop(queue)
            if current.arguments_key() in seen:
                continue
            seen.add(current.arguments_key())
            attempts -= 1
            trial = attempt(self.op, current, self.seed, self.keywords)
            if trial.score == 6:
                return Found(current, trial)
            if trial.failure is not None and not trial.contract:
                more = 1 if square and trial.score == 0 else 0
                for child in repairs(FailedAttempt(current, trial.failure, self.evidence)):
                    if child.squares() <= max(plan.squares() + more, current.squares()):
                        heapq.heappush(
                            queue, (child.cost, next(self._order), with_linked_permutations(child))
                        )
        return None

    def _missing(self, plan: Plan, trial: Trial) -> int | None:
        """How much is missing of the conditions that stopped an attempt, which is noted."""
        if trial.score or trial.failure is None:
            return None
        missing = unmet(self._failed_attempt(plan, trial.failure))
        text = re.sub(r"\d+", "", trial.failure.text)
        self._refusals.append((trial.failure.kind, text, missing))
        return missing

    def _failed_attempt(self, plan: Plan, failure: Failure) -> FailedAttempt:
        """What is known of a failed attempt; that of the last one is kept, since reading the code
        takes longer than most attempts."""
        if self._last_failed is None or self._last_failed.failure is not failure:
            self._last_failed = FailedAttempt(plan, failure, self.evidence)
        return self._last_failed

    def _gain(self, node: _Candidate, trial: Trial, missing: int | None) -> float:
        """What the move that led to ``node`` was worth, judged by how the error changed, and by how
        much is still ``missing`` of the conditions that failed."""
        if trial.score == 3 and node.backward:
            return _BONUS if _reach_of_backward(trial) > node.backward else 0.0
        if trial.score or trial.failure is None:
            return 0.0
        text = str(trial.failure)
        if text == node.text:
            if missing is not None and node.unmet is not None and missing != node.unmet:
                return _NEARER if missing < node.unmet else -_BONUS
            return -_BONUS
        # A square that lets forward get further is one that forward asks for.
        further = bool(node.reach) and trial.progress > node.reach
        gain = _BONUS + SQUARE_COST * node.squares if further else 0.0
        pattern = re.sub(r"\d+", "", text)
        new = pattern not in self._patterns
        self._patterns.add(pattern)
        # Another error at the same place: the first one is solved. Wrong kinds of arguments raise
        # new errors too, but of other types.
        kind = trial.failure.kind not in ("TypeError", "AttributeError", "NotImplementedError")
        if new and kind and node.text and trial.progress >= node.reach:
            gain += _BONUS
        return gain

    def _push(self, node: _Candidate) -> None:
        parts = [node.plan.guess(name) for name in self._parts & set(node.plan.names)]
        if any(_is_empty(guess) or (self._called and _is_of_tensors(guess)) for guess in parts):
            return  # where it runs with parts that can't be called, it goes through none of them
        if 0 in dict(node.plan.fixed).values():
            return  # a loop over nothing runs, whatever the shapes of the others
        # What a plan comes to is found out when its turn comes: most of them wait for ever.
        cost = node.plan.cost - node.bonus + BELOW_RANK_COST * self._below_rank(node.plan)
        heapq.heappush(self._queue, (cost, next(self._order), node))

    def _below_rank(self, plan: Plan) -> int:
        """Number of tensors with fewer axes than the code reads."""
        return sum(
            len(guess.axes) < self.evidence[name].least_rank
            for name, guess in plan.tensors()
            if isinstance(plan.guess(name), TensorGuess)
        )

    def _children(
        self, plan: Plan, trial: Trial, best: tuple[Plan, Trial] | None
    ) -> Iterator[Plan]:
        if trial.score == 0:
            if trial.failure is None:
                return
            failed = self._failed_attempt(plan, trial.failure)
            yield from repairs(failed)
            if best is None or best[1].score < 3:
                yield from self._neighbours(plan, failed.blamed())
            if _SHAPES.search(trial.failure.text):
                yield from other_ranks(plan, _FORWARD_RANKS)
        elif trial.score == 1:
            yield from _differentiable(plan)
            yield from self._neighbours(plan, [])
        elif trial.score == 2:
            # Forward takes these shapes, and they come to nothing: they may not be meant.
            yield from (*self._series, *_domains(plan, self._mentioned))
            yield from made_wide(plan, WIDE_COST)
            yield from self._other_numbers(plan)
        elif trial.score == 3 and trial.failure is not None and not trial.contract:
            failed = FailedAttempt(plan, trial.failure, self.evidence)
            # A square matrix would hide the very mistake that made backward fail.
            most = 99 if _wants_square(trial.failure.text) else plan.squares()
            repaired = (child for child in repairs(failed) if child.squares() <= most)
            yield from (*self._series, *repaired)
            misfit = GRADIENT_SHAPE_ERROR.search(trial.failure.text)
            if misfit is None:
                yield from (*other_ranks(plan), *fewer_indices(plan))
            else:
                yield from self._named_ranks(plan)
            if misfit is None or _is_nowhere(plan, misfit):
                yield from without_own_axes(plan)
                yield from self.as_scalars(plan)
        elif trial.score == 4:
            if not trial.finite:
                wide = ("real", "positive")
                free = {n: g.domain for n, g in plan.tensors() if g.domain in wide}
                self.free_of_sign |= {name for name, domain in free.items() if domain == "real"}
                self.beyond_one |= set(free)
                yield from with_unequal_members(plan)
            yield from _domains(plan, self._mentioned)
            yield from self._other_numbers(plan)
        yield from self._like_returned(plan, trial)

    def _with_weight(self, plan: Plan) -> Iterator[Plan]:
        """The plan with positive numbers where the code has one for each member of a sequence: of
        weights that are clamped at zero, all count then."""
        for name, item in self.evidence.items():
            guess = plan.guess(name) if item.for_each_of in plan.names else None
            if isinstance(guess, TensorGuess) and guess.domain == "real":
                yield plan.changed(name, replace(guess, domain="positive"), 0.2)

    def _named_ranks(self, plan: Plan) -> Iterator[Plan]:
        """The plan with the numbers of axes for which the code has a case of its own."""
        for name, item in self.evidence.items():
            for rank in sorted(item.named_ranks):
                if rank_of(plan, name) not in (None, rank):
                    yield with_rank(plan, name, rank, NAMED_RANK_COST)

    def _like_returned(self, plan: Plan, trial: Trial) -> Iterator[Plan]:
        """The plan with tensors like the gradients that were returned for them; with weights that
        are not clamped, where some gradients are zero."""
        if trial.score == 5:
            yield from self._with_weight(plan)
        if trial.real and not self._complex:
            yield from as_real(plan, trial.real)
        if trial.reduced:
            yield from like_returned(plan, trial.reduced)
            yield from without_batch(plan, trial.reduced)
            yield from other_ranks(plan)

    def _other_numbers(self, plan: Plan) -> Iterator[Plan]:
        """The plan with other values of its floating parameters."""
        for name, guess in zip(plan.names, plan.guesses, strict=True):
            if isinstance(guess, ValueGuess) and isinstance(guess.value, float):
                for step, value in enumerate(_names.floats(name)):
                    if value != guess.value:
                        yield plan.changed(name, ValueGuess(value, "float"), 0.1 + 0.1 * step)

    def as_scalars(self, plan: Plan) -> Iterator[Plan]:
        """Scalars where backward returns a sum over all elements, and nothing else says how many
        axes there are: forward broadcast by accident what has more."""
        changed = plan
        for name in summed(self.evidence):
            if rank_of(plan, name):
                changed = with_rank(changed, name, 0, 0.0)
        if changed != plan:
            yield replace(changed, cost=plan.cost + 0.3)

    def _neighbours(self, plan: Plan, blamed: list[str]) -> Iterator[Plan]:
        """Plans that differ in one guess."""
        shares = plan.shares or (0.0,) * len(plan.names)
        for index, (name, options) in enumerate(self.proposals.items()):
            near = 0.3 + 0.1 * blamed.index(name) if name in blamed else 0.9
            for guess, cost in options[: 14 if name in blamed else 9]:
                if guess != plan.guesses[index]:
                    extra = max(cost - shares[index], 0.0) + near
                    yield plan.changed(name, guess, extra, cost)


def _reach_of_backward(trial: Trial) -> tuple[float, ...]:
    """The lines that raised in backward, in order; beyond all lines where the engine did not take
    what backward returned. Empty where backward did not raise."""
    if trial.score != 3 or trial.failure is None:
        return ()
    if GRADIENT_SHAPE_ERROR.search(trial.failure.text):
        return (float("inf"),)
    return tuple(float(frame.line) for frame in trial.failure.frames)


def _needs_more(trial: Trial) -> bool:
    """Whether an attempt was refused by what the op needs beside its arguments."""
    found = explain_text(str(trial.failure)) if trial.failure is not None else None
    return found is not None and found.slug in BESIDE_THE_INPUTS


def _kinds(plan: Plan) -> tuple[object, ...]:
    """Which arguments are tensors of how many axes, and the types of all others."""
    return tuple(
        (guess.dtype, len(guess.axes))
        if isinstance(guess, TensorGuess)
        else type(guess.value).__name__
        if isinstance(guess, ValueGuess)
        else repr(guess)
        for guess in plan.guesses
    )


def _by_accident(plan: Plan, trial: Trial) -> Trial:
    """``trial``, with those summed gradients that have more axes than any input, or a size that
    none has. A smaller operand that forward broadcasts to a larger one is common; operands that
    make up a shape which none of them has were probably meant to be of other shapes."""
    most = _most_axes(plan)
    sizes = {1, *plan.sizes().values(), *(size for shape in trial.shapes for size in shape)}
    kept = {
        place: shape
        for place, shape in trial.reduced.items()
        if len(shape) > most or not set(shape) <= sizes
    }
    return replace(trial, reduced=kept) if trial.reduced else trial


def _is_nowhere(plan: Plan, misfit: re.Match[str]) -> bool:
    """Whether a gradient of wrong shape has more axes than any input (see :func:`_by_accident`)."""
    return len(re.findall(r"\d+", misfit.group(2))) > _most_axes(plan)


def _most_axes(plan: Plan) -> int:
    return max((len(guess.axes) for _, guess in plan.tensors()), default=0)


def _elements(plan: Plan) -> int:
    """Elements of the largest tensor of a plan."""
    sizes = plan.sizes()
    return max((prod(sizes[axis] for axis in guess.axes) for _, guess in plan.tensors()), default=0)


def _wants_square(text: str) -> bool:
    """Whether an error asks for equal sizes: in words, or by a gradient that has them."""
    found = GRADIENT_SHAPE_ERROR.search(text)
    sizes = re.findall(r"\d+", found.group(2)) if found else []
    return "square" in text or len(set(sizes)) < len(sizes)


def with_linked_permutations(plan: Plan) -> Plan:
    """The plan with every inverse permutation shaped like the permutation it inverts."""
    for name, guess in plan.tensors():
        partner = guess.domain.removeprefix("inverse of ")
        if partner != guess.domain and partner in plan.names:
            other = plan.guess(partner)
            if isinstance(other, TensorGuess) and other.axes != guess.axes:
                plan = plan.changed(name, replace(guess, axes=other.axes))
    return plan


def with_one_for_each(plan: Plan, evidence: dict[str, Evidence]) -> Plan:
    """The plan where tensors have one element for each member of a sequence as the code has it:
    ``w[i] * x`` for ``i, x in enumerate(xs)``. With more of them, forward runs by accident."""
    for name, item in evidence.items():
        group = plan.guess(item.for_each_of) if item.for_each_of in plan.names else None
        symbol = _symbol(plan, name, 0)
        if isinstance(group, GroupGuess) and symbol and not symbol.startswith("="):
            plan = plan.sized(symbol, len(group.items))
    return plan


def _in_step(plan: Plan, evidence: dict[str, Evidence]) -> Plan:
    """The plan with those axes tied that the code goes along in one loop: ``f[t] * h + x[t]``; with
    the lengths that loops give them: ``off[i] * x[i + 1]``."""
    plan, counted = _as_long_as_read(_with_parts(plan, evidence), evidence)
    leaders: dict[str, str] = {}
    for name, item in evidence.items():
        guess = plan.guess(name) if name in plan.names else None
        if not isinstance(guess, TensorGuess):
            continue
        for step, axis in item.stepped.items():
            if axis < len(guess.axes) and guess.axes[axis] not in counted:
                symbol = guess.axes[axis]
                leader = leaders.setdefault(step, symbol)
                tied = plan if symbol.startswith("=") else plan.tied(leader, symbol)
                if tied.squares() <= plan.squares():
                    plan = tied
    return plan


def _few_unlike(plan: Plan, unlike: tuple[tuple[str, str], ...]) -> Plan:
    """The plan with so few integers of which none are alike that there are others beside them."""
    for name, which in unlike:
        symbol = _symbol(plan, name, 0)
        alone = sum(symbol in guess.axes for _, guess in plan.tensors()) == 1
        if which == "elements" and not _symbol(plan, name, 1) and alone and symbol[:1] != "=":
            plan = plan.sized(symbol, FEW_UNLIKE)
    return replace(plan, unlike=unlike)


def _with_parts(plan: Plan, evidence: dict[str, Evidence]) -> Plan:
    """The plan with as many elements for each of the parts that the code takes in turn, and with
    those of the parts into which it splits an axis."""
    for name, item in evidence.items():
        in_turn = {axis: EACH_PART * parts for axis, parts in item.interleaved.items()}
        for axis, size in (in_turn | item.split).items():
            symbol = _symbol(plan, name, axis)
            if symbol and not symbol.startswith("=") and symbol not in dict(plan.fixed):
                plan = plan.sized(symbol, size)
    return plan


def _as_long_as_read(plan: Plan, evidence: dict[str, Evidence]) -> tuple[Plan, set[str]]:
    """The plan with the lengths that loops give to axes, and the symbols whose length is known."""
    known: set[str] = set()
    for name, item in evidence.items():
        guess = plan.guess(name) if name in plan.names else None
        for axis in (*item.measured, *item.lengths) if isinstance(guess, TensorGuess) else ():
            symbol = _symbol(plan, name, axis)
            known |= {symbol} if symbol else set()
            length = item.lengths.get(axis)
            alone = sum(symbol in other.axes for _, other in plan.tensors()) == 1
            if not symbol or symbol.startswith("=") or not alone or length is None:
                continue
            bases = [_symbol(plan, owner, place) for (owner, place, _), _ in length.factors]
            if not all(bases) or symbol in bases or len(bases) > len(LETTERS):
                continue
            if length.same_as() is not None:
                tied = plan.tied(bases[0], symbol)
                plan = tied if tied.squares() <= plan.squares() else plan
            else:
                plan = plan.following(symbol, Related(length.formula(), tuple(bases)))
    return plan, known


def _symbol(plan: Plan, name: str, axis: int) -> str:
    """The symbol of an axis of a tensor; empty where it has none."""
    guess = plan.guess(name) if name in plan.names else None
    axes = guess.axes if isinstance(guess, TensorGuess) else ()
    return axes[axis] if -len(axes) <= axis < len(axes) else ""


def _better(
    node: _Candidate, trial: Trial, known: Plan, before: Trial, evidence: dict[str, Evidence]
) -> bool:
    """Whether ``trial`` counts more than the one ``before`` of the plan ``known``."""
    plan = node.plan
    if trial.score == before.score:
        fits = before.reduced and not trial.reduced and trial.zero <= before.zero
        if fits or (before.real and not trial.real):
            return plan.cost <= known.cost + _MOST_EXTRA_COST
        return trial.zero < before.zero and plan.cost <= known.cost + 0.5
    if trial.score < before.score:
        return False
    if before.score < 3:
        return True
    # Backward alone does not justify unlikely inputs, nor inputs on which a wrong backward looks
    # like a right one. Axes are tied because of it only when it asked for that, or where a plan
    # with tied axes is about as likely.
    fewer = len(plan.symbols()) < len(known.symbols())
    if fewer and not node.kin and plan.cost > known.cost + _AS_LIKELY:
        return False
    # With more axes, forward may well ask for equal ones.
    deeper = before.failure is not None and _TOO_FEW_AXES.search(before.failure.text)
    forced = node.forced if deeper else 0
    near = plan.cost <= known.cost + _MOST_EXTRA_COST + SQUARE_COST * forced
    # A single one of several, whose weight is not clamped to zero, can be taken for no other.
    single = before.score >= 5 and _members(plan) < _members(known)
    return near and not single and not _hides_mistakes(plan, known, before, forced, evidence)


def _members(plan: Plan) -> int:
    """Number of members of all sequences."""
    return sum(len(guess.items) for guess in plan.guesses if isinstance(guess, GroupGuess))


def _hides_mistakes(
    plan: Plan, known: Plan, before: Trial, forced: int, evidence: dict[str, Evidence]
) -> bool:
    """Whether wrong gradients may look right under the plan: it has more equal sizes than the
    ``forced`` ones, scalars where ``known`` has none, a size as large as the number of elements
    that backward viewed in a wrong shape, or more axes where a gradient had a wrong shape, and
    neither backward asked for them, nor has the code a case for that number of axes."""
    text = before.failure.text if before.failure is not None else ""
    asked = bool(text) and _wants_square(text)
    if plan.squares() - forced > known.squares() and not asked:
        return True
    if len(set(plan.pool)) == 1 < len(set(known.pool)):
        return True
    if max(plan.sizes().values(), default=0) > MOST_ASKED >= max(known.sizes().values(), default=0):
        return True
    ranks = {name: len(guess.axes) for name, guess in known.tensors()}
    # A gradient reduced along a wrong axis fits where broadcasting gives others more axes.
    misfit = GRADIENT_SHAPE_ERROR.search(text)
    lost = misfit is not None and not keeps_axes(misfit)
    more = ((name, guess) for name, guess in plan.tensors() if len(guess.axes) > ranks.get(name, 9))
    if lost and any(
        name not in evidence or len(guess.axes) not in evidence[name].named_ranks
        for name, guess in more
    ):
        return True
    scalars = summed(evidence)
    scalar = misfit is not None and not misfit.group(2)
    return not (scalar or _SHOULD_BE_SCALAR.search(text)) and any(
        not guess.axes and ranks.get(name) and name not in scalars for name, guess in plan.tensors()
    )


def _alternatives(first: Plan) -> Iterator[Plan]:
    """All floating tensors of one shape; equal sizes everywhere."""
    floating = [guess for _, guess in first.tensors() if guess.dtype in ("float", "complex")]
    if len(floating) > 1:
        shape = max((guess.axes for guess in floating), key=len)
        yield _same_shape(first, shape, 1.1)
        for rank, cost in ((1, 1.9), (3, 2.1), (4, 2.2)):
            if rank != len(shape):
                yield _same_shape(first, tuple(f"s.{axis}" for axis in range(rank)), cost)
        yield replace(first, pool=OTHER_SIZES[2], cost=2.4)


def _is_empty(guess: Guess) -> bool:
    """Whether ``guess`` is a collection of nothing."""
    return (
        isinstance(guess, ValueGuess)
        and isinstance(guess.value, (dict, list, tuple))
        and not guess.value
    )


def _is_of_tensors(guess: Guess) -> bool:
    """Whether the parts of ``guess`` are tensors."""
    if isinstance(guess, GroupGuess):
        return bool(guess.items) and all(isinstance(item, TensorGuess) for item in guess.items)
    return isinstance(guess, TensorGuess)


def _complex(plan: Plan) -> int:
    return sum(guess.dtype == "complex" for _, guess in plan.tensors())


def _same_shape(plan: Plan, shape: tuple[str, ...], cost: float) -> Plan:
    def convert(guess: TensorGuess) -> TensorGuess:
        floating = guess.dtype in ("float", "complex")
        return replace(guess, axes=shape) if floating and guess.axes else guess

    return replace(plan.mapped(convert), cost=plan.cost + cost)


def _domains(plan: Plan, mentioned: list[str]) -> Iterator[Plan]:
    """The plan with other domains, for all floating tensors at once and one by one; first with
    those that the documentation mentions."""
    floating = [name for name, guess in plan.tensors() if guess.dtype == "float"]
    said = [domain for domain in mentioned if domain != "real"]
    # Of log-probabilities there may be the largest alone, and a remainder.
    said += ["shares"] if "logs" in said else []
    for index, domain in enumerate(dict.fromkeys([*said, *DOMAINS])):
        if domain in ("real", *_SPECIAL) and domain not in said:
            continue

        def convert(guess: TensorGuess, domain: str = domain) -> TensorGuess:
            is_vector = domain in OF_SQUARES and len(guess.axes) < 2
            suits = guess.dtype == "float" and not is_vector
            return replace(guess, domain=domain) if suits else guess

        changed = replace(plan.mapped(convert), cost=plan.cost + 0.15 + 0.08 * index)
        if domain in OF_SQUARES:
            changed = _squared(changed)
        yield changed
        for position, name in enumerate(dict.fromkeys(floating)):
            guess = plan.guess(name)
            if len(floating) > 1 and isinstance(guess, (TensorGuess, GroupGuess)):
                single = Plan((name,), (guess,)).mapped(convert).guesses[0]
                cost = 0.2 + 0.08 * index + 0.02 * position
                yield plan.changed(name, single, cost)
    if any(guess.axes for _, guess in plan.tensors()):
        yield replace(plan.mapped(_alike), cost=plan.cost + ALIKE_COST)
    for name in dict.fromkeys(floating):  # cutpoints, between which there are probabilities
        guess = plan.guess(name)
        if isinstance(guess, TensorGuess) and len(guess.axes) == 1 and guess.domain == "real":
            yield plan.changed(name, replace(guess, domain="ordered"), CUTPOINTS_COST)


def _alike(guess: TensorGuess) -> TensorGuess:
    return replace(guess, domain="alike") if guess.dtype == "float" else guess


def _squared(plan: Plan) -> Plan:
    for _, guess in plan.tensors():
        if guess.domain in OF_SQUARES and len(guess.axes) > 1 and guess.axes[-1] != guess.axes[-2]:
            plan = plan.tied(guess.axes[-2], guess.axes[-1])
    return plan


def _differentiable(plan: Plan) -> Iterator[Plan]:
    def convert(guess: TensorGuess) -> TensorGuess:
        return replace(guess, grad=True) if guess.dtype in ("float", "complex") else guess

    yield replace(plan.mapped(convert), cost=plan.cost + 0.1)
