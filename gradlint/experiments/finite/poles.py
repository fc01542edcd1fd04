"""Whether forward divides by an input at its zeros: then zero is hardly among the values that the
input is meant to have, and what is not finite there is no fault of a gradient.

A function such as sin(x) / x has a value at zero that its formula misses. A width, a rate or a
half-life by which everything is divided is just never zero. What tells them apart is what is
divided: something that is not zero itself (a pole of the formula), or the elements of other tensors
by one parameter that many of them share, or by an element selected from them (the highest so far).
Zero over zero of single elements tells nothing, unless zero lies outside of the values that were
given.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from gradlint.experiments.subject import Subject
from gradlint.experiments.watched_forward import watch_forward
from gradlint.trace.divisions import Divisions
from gradlint.trace.problem import Problem


def divided_by_zeros(
    subject: Subject,
    values: Sequence[torch.Tensor],
    problem: Problem | None = None,
    outside: Collection[int] = (),
) -> frozenset[int]:
    """Positions of the inputs by whose zeros forward divides, without a guard. One forward call.

    Args:
        subject: the op on its sample; the call counts there.
        values: of its inputs, some of them zero.
        problem: the op on other arguments; default the subject's.
        outside: positions of inputs that have no zero, and no sign but one, where they were given.
    """
    watched = Divisions(values)
    if not watch_forward(subject, watched, problem, values) or watched.looks:
        return frozenset()
    vanishing = watched.vanishing.intersection(outside)
    return frozenset((watched.poles | watched.stretched | vanishing) - watched.compared)
