"""Axes of which forward takes one element as the rest behind a fixed number of others.

``z = points[:, 2:]`` of points in space is a column, and divides their other coordinates. Of points
with four coordinates it is two, which divide one each: another function, which nobody means.
"""

from __future__ import annotations

from gradlint.experiments.subject import Subject
from gradlint.experiments.watched_forward import watch_forward
from gradlint.model.sample import Sample
from gradlint.trace.problem import Problem
from gradlint.trace.slices import Slices


def rest_was_one_element(subject: Subject, sample: Sample) -> bool:
    """Whether the rest of an axis is several elements at ``sample`` where it is one at the
    subject's own. Two forward calls."""
    before = _lengths(subject, subject.problem)
    after = _lengths(subject, subject.problem.at(sample))
    return len(before) == len(after) and any(
        one == 1 < other for one, other in zip(before, after, strict=True)
    )


def _lengths(subject: Subject, problem: Problem) -> list[int]:
    watched = Slices()
    return watched.lengths if watch_forward(subject, watched, problem) else []
