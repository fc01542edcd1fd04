"""Inputs that an op holds constant when its gradient is taken: the one place that decides it.

Whether a gradient that is missing or zero is forgotten or by design can't be told from numbers.
The documentation may say it: "relevance: (N, L), taken as a constant".
"""

from __future__ import annotations

import re

from gradlint.experiments.subject import Subject
from gradlint.inputs.documentation import documented_constant, prose

#: Words in argument names that stand for constants in PyTorch's own functions, none of which is
#: differentiated there either (a convention, so it is a note and not a fault).
CONSTANTS = frozenset(
    {
        *("gt", "label", "labels", "target", "targets", "mask", "masks", "noise", "seed", "step"),
        *("idx", "index", "indices", "length", "lengths", "eps", "epsilon", "vareps"),
        *("buffer", "ema", "moving", "running"),
    }
)


def is_constant_by_name(name: str) -> bool:
    """Whether the name of an argument has a word of :data:`CONSTANTS`."""
    words = re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
    return not CONSTANTS.isdisjoint(words)


def is_constant(subject: Subject, position: int) -> bool:
    """Whether the input at ``position`` has no gradient, or one of zeros, and the documentation of
    the op says that it is a constant."""
    gradients = subject.run.gradients
    gradient = gradients[position] if gradients is not None else None
    if gradient is not None and bool((gradient != 0).any()):
        return False
    return is_called_constant(subject, subject.problem.inputs[position].name)


def is_called_constant(subject: Subject, name: str) -> bool:
    """Whether the documentation of the op says that the argument ``name`` is a constant."""
    op = subject.op
    if op.defining is None or op.signature is None:
        return False
    return documented_constant(prose(op.defining), name, op.signature.parameters)
