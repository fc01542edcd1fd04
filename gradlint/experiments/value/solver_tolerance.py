"""A forward that iterates to a tolerance: how far it is from convergence, and whether its gradient
is that of the converged function.

An implicit backward returns the derivative of the limit z*, and differences measure that of the
iterate z̃ at which forward stops. The two differ by the convergence error of the derivative, which
is larger than the tolerance, and no step of a difference makes it smaller. So the forward is run
with tighter tolerances: where its gradient then agrees with differences, the tolerance explains the
disagreement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.iterations import run_counted
from gradlint.experiments.subject import Subject
from gradlint.inputs.designed_arguments import (
    counts_iterations,
    iteration_counts,
    tolerances_at,
    with_arguments,
)
from gradlint.numerics.decide import decide
from gradlint.numerics.map import Map
from gradlint.numerics.products import dense, norm, widened
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.ops.dispatch_mode import DispatchMode
from gradlint.trace.longer_loops import counted_loops, more_rounds
from gradlint.trace.op_io import OpRaised, Output
from gradlint.trace.problem import Problem
from gradlint.trace.tightened import Tightened, TooLong

#: Factors by which tolerances are tightened, the first that lets the op end. A million makes an
#: error that was material vanish; a tolerance below rounding is never met, so less is tried too.
FACTORS = (1e6, 1e4, 1e2)

#: Times as many calls of PyTorch's functions as usual that a tightened op may make, and more for
#: those that usually make few (heuristic: linear convergence needs 2 to 5 times as many).
LONGER, ALLOWANCE = 30, 1000

#: Seconds that a tightened call may take.
MOST_SECONDS = 2.0

#: Outputs that change by more than this share are not those of a tighter tolerance: the numbers
#: that were changed had another meaning (heuristic).
SAME_FUNCTION = 0.05

#: Share of ``--timeout`` that a judgement of the tightened op may take, and the calls of one.
SHARE_OF_TIMEOUT, CALLS = 0.2, 120


#: Relative error of a gradient below which the tolerance of an iterative forward is taken as its
#: reason without a measurement (heuristic: tolerances are 1e-8 to 1e-4).
UNSEEN = 1e-3

#: Times as many iterations that are tried where an integer argument may be their number, and the
#: least such number where its name says nothing (heuristic: smaller integers are axes, sizes and
#: flags).
MORE_ITERATIONS, LEAST_ITERATIONS = 4, 5

#: The number of iterations that is tried where an argument that was guessed, or its default, is one
#: by its name (heuristic: bisection, which is slow, needs 53 for all digits of float64).
ENOUGH_ITERATIONS = 60

#: Relative change of a gradient below which more iterations make no difference, and from which on
#: they do (heuristic: converged iterates differ by roundings, others visibly).
SAME_GRADIENT, OTHER_GRADIENT = 1e-6, 1e-4

#: Relative change of an output below which forward has converged (heuristic: roundings of a long
#: computation in float64).
CONVERGED = 1e-12


#: Makes a context in which forward runs.
Around = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class Solver:
    """An iterative forward.

    Args:
        factor, left: how it is tightened (see :class:`gradlint.trace.tightened.Tightened`).
        error: by how much its outputs change then, relative to their size; NaN if it did not end.
        call_s: seconds of a tightened call; inf if it did not end.
        most: calls of PyTorch's functions after which a tightened backward is ended.
    """

    factor: float
    left: bool
    error: float
    call_s: float
    most: int

    def tightened(self, problem: Problem, *, backward: bool) -> Problem:
        """``problem`` at the same values, with tighter tolerances of forward, or of both."""
        found = problem.through(lambda invoke: invoke)
        found.put(dict(enumerate(problem.values())))
        most = self.most if backward else None
        found.surroundings = lambda: Tightened(
            self.factor, left=self.left, most=most, backward=backward
        )
        found.patience = None
        return found

    @contextmanager
    def tightening(self, problem: Problem) -> Iterator[None]:
        """Run ``problem`` itself with tighter tolerances in the body."""
        with surrounded(problem, lambda: Tightened(self.factor, left=self.left)):
            yield


def find_solver(subject: Subject) -> Solver | None:
    """How the op of ``subject`` is tightened; None where its number of calls does not depend on
    tolerances, or it does not end with tighter ones."""
    try:
        usual, before, usual_s = run_counted(subject.problem, Tightened())
    except OpRaised:
        return None
    longer = min(LONGER, MOST_SECONDS / max(usual_s, 1e-6))
    most = int(longer * usual) + ALLOWANCE
    for factor in FACTORS:
        for left in (True, False):
            try:
                calls, after, call_s = run_counted(
                    subject.problem, Tightened(factor, left=left, most=most)
                )
            except OpRaised as raised:
                if factor == FACTORS[-1] and isinstance(raised.error, TooLong):
                    return Solver(factor, left, math.nan, math.inf, most)
                break  # a smaller factor may let it end
            change = _change(before, after) if calls > usual else None
            if change is not None and change <= SAME_FUNCTION:
                return Solver(factor, left, change, call_s, most)
    return None


def find_early_end(subject: Subject, values: Sequence[torch.Tensor]) -> Solver | None:
    """The same where forward ends earlier at ``values`` than at the sample, as a loop does whose
    first guess is good enough there; a tighter tolerance need not show at the sample."""
    counted, there = Tightened(), Tightened()
    tried = Tightened(FACTORS[0])
    try:
        _, before, call_s = run_counted(subject.problem, counted)
        run_counted(subject.problem, there, values)
        _, after, _ = run_counted(subject.problem, tried)
    except OpRaised:
        return None
    change = _change(before, after)
    if there.calls >= counted.calls or not tried.changed or change is None:
        return None
    most = LONGER * counted.calls + ALLOWANCE
    return Solver(FACTORS[0], True, change, call_s, most) if change <= SAME_FUNCTION else None


def right_when_converged(subject: Subject, position: int, relative_error: float) -> float | None:
    """The relative error that would have been seen in the gradient of input ``position`` where it
    agrees with differences once forward converges further; None where it does not. Where that takes
    too long to see, an error below :data:`UNSEEN` is put down to it."""
    solver = subject.once(find_solver)
    if solver is None:
        return None
    if CALLS * solver.call_s > SHARE_OF_TIMEOUT * subject.settings.timeout:
        return relative_error if relative_error <= UNSEEN else None
    for backward in (True, False):  # one that solves with a tolerance, too, or never ends then
        problem = solver.tightened(subject.problem, backward=backward)
        function = replace(first_order(problem), project=subject.first_order_map.project)
        with suppress(OpRaised):
            found = _agrees(function, subject, position)
            if found is not None:
                return found
    return None


def _agrees(function: Map, subject: Subject, position: int) -> float | None:
    """The resolution at which the gradient of input ``position`` agrees; None where it does not."""
    decision = decide(function, seed=subject.seed, inputs=[position])
    agrees = decision.verdicts[0] in (AGREES, ROUNDED)
    return decision.resolution_of(position) if agrees else None


def right_with_other_limits(subject: Subject, position: int) -> float | None:
    """The same where forward ends at a tolerance that an argument gives, by its name, or iterates
    as often as one says that nobody gave, once that is tight, or often enough.

    A backward that goes back through the iterations is right after few of them too, or wrong."""
    for moved in _other_limits(subject):
        longer = subject.problem.at(with_arguments(subject.op, subject.sample, moved))
        function = replace(first_order(longer), project=subject.first_order_map.project)
        try:
            _, _, call_s = run_counted(longer, Tightened())
            if CALLS * call_s > SHARE_OF_TIMEOUT * subject.settings.timeout:
                continue
            if _operations_back(longer, subject) > _operations_back(subject.problem, subject):
                continue
            found = _agrees(function, subject, position)
        except OpRaised:
            continue
        if found is not None:
            return found
    return None


def _other_limits(subject: Subject) -> Iterator[dict[str, float]]:
    """Numbers by which forward converges further than at the sample, by the names of arguments."""
    op, sample = subject.op, subject.sample
    iterations = {
        name: ENOUGH_ITERATIONS
        for name, count in iteration_counts(op, sample).items()
        if 0 < count < ENOUGH_ITERATIONS and sample.origin == "inferred"
    }
    tolerances = {k: v / FACTORS[0] for k, v in tolerances_at(op, sample).items()}
    if tolerances:
        yield {**tolerances, **iterations}
    for name, count in iterations.items():
        yield {name: count}


class _Operations(DispatchMode):
    """Counts operations of PyTorch."""

    count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.count += 1
        return self.through(func, args, kwargs)


def _operations_back(problem: Problem, subject: Subject) -> int:
    """How many operations backward does."""
    leaves, outputs = problem.linearize()
    with _Operations() as operations:
        problem.pull_from(outputs, leaves, subject.run.cotangents)
    return operations.count


def unconverged_at(
    subject: Subject,
    values: Sequence[torch.Tensor],
    position: int,
    index: Sequence[int] | None = None,
) -> bool:
    """Whether forward iterates as often as an integer says, an argument, an attribute of the module
    or a number in its code, and that is enough at the sample and too little at ``values``: with
    more iterations, the gradient of input ``position`` is the same there, and another one here.

    Args:
        index: the only element of it to look at.
    """
    for longer in _with_more_iterations(subject):
        try:
            there = _gradient_change(subject, longer, subject.problem.values(), position)
            if there > SAME_GRADIENT:
                continue
            if _gradient_change(subject, longer, values, position, index) > OTHER_GRADIENT:
                return True
        except OpRaised:
            continue
        finally:
            subject.problem.forward_calls += longer.forward_calls
            subject.problem.backward_calls += longer.backward_calls
    return False


def _with_more_iterations(subject: Subject) -> Iterator[Problem]:
    """The op with each of the integers that may be numbers of iterations some times larger."""
    parameters = subject.op.signature.parameters.values() if subject.op.signature else ()
    found = {item.name: item.default for item in parameters} | dict(subject.arguments())
    for name, count in _counts(found):
        sample = with_arguments(subject.op, subject.sample, {name: MORE_ITERATIONS * count})
        longer = subject.problem.at(sample)
        if _makes_more_calls(subject, longer):
            yield longer
    for around in _longer(subject):
        longer = subject.problem.through(lambda invoke: invoke)
        longer.surroundings = around
        yield longer


def _longer(subject: Subject) -> Iterator[Around]:
    """The same by contexts, for the numbers that are no arguments: attributes of a module, and
    rounds of a loop that are written in the code."""
    found: list[Around] = []
    module = subject.op.module
    for name, count in _counts(vars(module)) if module is not None else ():
        found.append(partial(_set, module, name, MORE_ITERATIONS * count))
    for function, count in counted_loops(subject.op):
        if count >= LEAST_ITERATIONS:
            found.append(partial(more_rounds, function, count, MORE_ITERATIONS))
    for around in found:
        if _makes_more_calls(subject, subject.problem, around):
            yield around


def _makes_more_calls(subject: Subject, problem: Problem, around: Around = nullcontext) -> bool:
    """Whether forward makes more calls of PyTorch's functions as ``problem`` within ``around`` than
    at the sample. Where a number is none of iterations, but a limit or a size, it makes as many."""

    @contextmanager
    def counting(mode: Tightened) -> Iterator[None]:
        with around(), mode:
            yield

    try:
        usual, _, _ = run_counted(subject.problem, Tightened())
        counted = Tightened()
        watched = problem.through(lambda invoke: invoke)
        watched.surroundings = lambda: counting(counted)
        watched.forward()
    except OpRaised:
        return False
    return counted.calls > usual


def enough_at_the_sample(subject: Subject, position: int) -> Iterator[Around]:
    """The contexts in which forward iterates more often where that makes no difference to the
    gradient of input ``position`` at the sample."""
    for around in _longer(subject):
        longer = subject.problem.through(lambda invoke: invoke)
        longer.surroundings = around
        try:
            if _gradient_change(subject, longer, longer.values(), position) <= SAME_GRADIENT:
                yield around
        except OpRaised:
            continue
        finally:
            subject.problem.forward_calls += longer.forward_calls
            subject.problem.backward_calls += longer.backward_calls


@contextmanager
def surrounded(problem: Problem, around: Around) -> Iterator[None]:
    """Run ``problem`` itself within ``around`` in the body."""
    before = problem.surroundings
    problem.surroundings = around
    try:
        yield
    finally:
        problem.surroundings = before


def _counts(numbers: Mapping[str, object]) -> list[tuple[str, int]]:
    """Those of ``numbers`` that may be numbers of iterations: by their size, or by their names."""
    return [
        (name, number)
        for name, number in numbers.items()
        if type(number) is int
        and (number >= LEAST_ITERATIONS or (number > 0 and counts_iterations(name)))
    ]


@contextmanager
def _set(thing: object, name: str, value: int) -> Iterator[None]:
    """An attribute has another value in the body."""
    before = getattr(thing, name)
    setattr(thing, name, value)
    try:
        yield
    finally:
        setattr(thing, name, before)


def _gradient_change(
    subject: Subject,
    longer: Problem,
    values: Sequence[torch.Tensor],
    position: int,
    index: Sequence[int] | None = None,
) -> float:
    """How much the gradient at ``values``, or its element ``index``, changes with more iterations,
    relative to its size."""
    cotangents = subject.run.cotangents
    before, after = (
        problem.pull(cotangents, values)[position] for problem in (subject.problem, longer)
    )
    if before is None or after is None or before.shape != after.shape:
        return math.inf
    before, after = widened(dense(before)), widened(dense(after))
    if index is not None:
        before, after = before[tuple(index)], after[tuple(index)]
    gap, size = norm(after - before), norm(before)
    return gap / size if size else gap


def convergence_error(subject: Subject) -> float:
    """By how much the outputs of an iterative forward change once it converges further, relative to
    their size; 0 for a forward that does not iterate to a tolerance, or does so to rounding."""
    if subject.coverage is None or not subject.coverage.ends_early():
        return 0.0  # asked of every op that passes: two calls are saved
    solver = subject.once(find_solver)
    if solver is None or math.isnan(solver.error):
        return 0.0
    return solver.error if solver.error > CONVERGED else 0.0


def tolerance_cause(subject: Subject) -> Cause:
    """The cause that forward stops at a tolerance, with its own error where that was measured."""
    solver = subject.once(find_solver)
    if solver is None:
        return Cause(
            "solver-tolerance",
            "solver tolerance: forward stops before it has converged: with a tighter tolerance or "
            f"{ENOUGH_ITERATIONS} iterations the gradient agrees with differences",
            "to judge the gradient, check the op with a tighter tolerance or more iterations",
        )
    error = solver.error
    measured = (
        "it took too long to converge further"
        if math.isnan(error)
        else f"its outputs are off by {error:.0e} of their size, and once they converge further, "
        "the gradient agrees with differences"
    )
    return Cause(
        "solver-tolerance",
        f"solver tolerance: forward stops before it has converged: {measured}; smaller errors of "
        "the gradient cannot be seen",
        "to see smaller errors, check the op with a tighter tolerance of forward",
    )


def _change(before: Sequence[Output], after: Sequence[Output]) -> float | None:
    """The largest relative change of an output; None where their kinds differ."""
    if [item.name for item in before] != [item.name for item in after]:
        return None
    largest = 0.0
    for one, other in zip(before, after, strict=True):
        a, b = one.value.detach(), other.value.detach()
        if a.shape != b.shape or not bool(torch.isfinite(widened(b).abs()).all()):
            return None
        size = norm(widened(a))
        gap = norm(widened(b) - widened(a))
        largest = max(largest, gap / size if size > 0.0 else gap)
    return largest
