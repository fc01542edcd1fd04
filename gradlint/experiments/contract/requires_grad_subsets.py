"""Subsets of inputs that require grad, and one tensor passed for two of them."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

from gradlint.experiments.baseline_comparison import Difference, make_baseline
from gradlint.experiments.state.guarded_run import make_guarded
from gradlint.experiments.subject import Subject
from gradlint.inputs.stand_ins import Owner, closures
from gradlint.trace.op_io import OpRaised

#: Inputs up to which every subset is tried: 14 of them (bugs seen are about one input and another,
#: so that singles and all but one see them beyond).
ALL_SUBSETS = 4

#: Subsets tried at most.
MOST = 14


def subsets(count: int, seed: int) -> list[list[int]]:
    """Proper, non-empty subsets of ``count`` inputs, small ones first.

    Of more inputs than :data:`MOST` halves: every one is alone or left out in some, so that each
    two are told apart; drawn from ``seed``.
    """
    everything = range(count)
    if count <= ALL_SUBSETS:
        return [list(c) for size in range(1, count) for c in combinations(everything, size)]
    if 2 * count <= MOST:
        singles = [[k] for k in everything]
        return singles + [[k for k in everything if k != left] for left in everything]
    order = list(everything)
    random.Random(seed).shuffle(order)
    found = [[order[0]], order[1:]]
    bit = 1
    while bit < count and len(found) + 2 <= MOST:
        part = [k for place, k in enumerate(order) if place & bit]
        found += [sorted(part), sorted(set(everything) - set(part))]
        bit *= 2
    return found


def closed_over(subject: Subject) -> set[int]:
    """Inputs that a function argument closes over: they are passed because they require grad."""
    args = subject.sample.args
    first = [item.first for item in closures(args)][:1]
    owned = [at for item in args if isinstance(item, Owner) for at in item.owned.values()]
    passed = {
        id(item) for item in (*(args[first[0] :] if first else ()), *(args[k] for k in owned))
    }
    if not passed:
        return set()
    named = subject.sample.named_tensors(subject.op.signature)
    names = {name for name, tensor in named if id(tensor) in passed}
    return {k for k, item in enumerate(subject.problem.inputs) if item.name in names}


def twins(subject: Subject) -> tuple[int, int] | None:
    """Two inputs of one shape and dtype, the first such pair; None where there are none, or the op
    works in place. Not those that a function closes over: it has a gradient for each of them."""
    inputs, closed = subject.problem.inputs, closed_over(subject)
    if any(item.declared for item in subject.once(make_guarded).arguments):
        return None
    for first, second in combinations((k for k in range(len(inputs)) if k not in closed), 2):
        a, b = inputs[first].value, inputs[second].value
        if a.shape == b.shape and a.dtype == b.dtype and a.device == b.device and a.numel():
            return first, second
    return None


def passed_twice(subject: Subject, first: int, second: int) -> Difference | None:
    """Where the gradient of one tensor, passed for both inputs, is not the sum of the gradients of
    two equal ones. None where it is, or where the op takes no equal ones.

    Raises:
        OpRaised: where the op takes two equal tensors, and raises for one passed twice.
    """
    problem, baseline = subject.problem, subject.once(make_baseline)
    assert baseline is not None
    values = problem.values()
    values[second] = values[first]
    try:
        apart = problem.pull(baseline.cotangents, values)
    except OpRaised:
        return None
    leaves = problem.leaves(values)
    shared = list(leaves)
    shared[second] = leaves[first]
    together = problem.pull_from(problem.connect(shared), leaves, baseline.cotangents)
    parts = [part for part in (apart[first], apart[second]) if part is not None]
    if not parts:
        return None
    total = parts[0] + parts[1] if len(parts) == 2 else parts[0]
    gradients = [total if k == first else g for k, g in enumerate(apart)]
    expected = replace(baseline, gradients=gradients, repeats=[], jittered=None)
    return next(iter(expected.differences(together, among=[first])), None)
