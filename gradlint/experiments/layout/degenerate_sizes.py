"""Sizes that nobody means, though forward takes them: a neighbour ``n - 2`` where n is one, more
equations than unknowns, or the best two of a single one.

A clamp to a range that ends before it begins returns its end, an index below zero counts from the
end of an axis, and a singular matrix is solved with where rounding leaves a pivot that is not zero:
forward raises nothing, and what it returns is not what it is meant to compute.
A line that does so at the sample, too, says nothing; nor does a branch that is there for such
sizes. What backward alone does is its own fault.
"""

from __future__ import annotations

from gradlint.experiments.subject import Subject
from gradlint.experiments.watched_forward import watch_forward
from gradlint.inputs.broken_bounds import breaks_bounds
from gradlint.inputs.designed_arguments import selected_count
from gradlint.inputs.resized import tensors_of
from gradlint.model.sample import Sample
from gradlint.trace.problem import Problem
from gradlint.trace.size_edges import SizeEdges


def is_degenerate(subject: Subject, sample: Sample) -> bool:
    """Whether forward runs out of the sizes of ``sample``, and not of those of ``subject``: a range
    is empty, an index falls below zero, a matrix that it solves with is singular, more elements
    of an axis are to be selected than there are, by the name of an argument, or values no longer
    keep a bound that is documented. Two forward calls at most."""
    if _selects_more(subject, sample) or breaks_bounds(subject.op, subject.sample, sample):
        return True
    there = _edges(subject, subject.problem.at(sample))
    if there is None or not there.beyond:
        return False
    before = _edges(subject, subject.problem)
    return before is not None and there.ran_out(before)


def _selects_more(subject: Subject, sample: Sample) -> bool:
    count = selected_count(subject.op, sample)
    pairs = zip(tensors_of(subject.sample), tensors_of(sample), strict=False)
    return any(
        now < count <= before
        for one, other in pairs
        for before, now in zip(one.shape[::-1], other.shape[::-1], strict=False)
    )


def _edges(subject: Subject, problem: Problem) -> SizeEdges | None:
    watched = SizeEdges()
    return watched if watch_forward(subject, watched, problem) else None
