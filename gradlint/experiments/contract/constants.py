"""Inputs that an op holds constant when its gradient is taken: the one place that decides it.

Whether a gradient that is missing or zero is forgotten or by design can't be told from numbers.
The documentation may say it: "relevance: (N, L), taken as a constant".
"""

from __future__ import annotations

import re

import torch

from gradlint.experiments.subject import Subject
from gradlint.experiments.watched_forward import watch_forward
from gradlint.inputs.documentation import documented_constant, prose
from gradlint.targets.nodes import source_text
from gradlint.trace.boundaries import Boundaries

#: Words in argument names that stand for constants in PyTorch's own functions, none of which is
#: differentiated there either (a convention, so it is a note and not a fault).
CONSTANTS = frozenset(
    {
        *("gt", "label", "labels", "target", "targets", "mask", "masks", "noise", "seed", "step"),
        *("idx", "index", "indices", "length", "lengths", "eps", "epsilon", "vareps"),
        *("buffer", "ema", "moving", "running", "gumbel", "gumbels", "uniform", "uniforms"),
        # What a policy or a student is trained towards.
        *("teacher", "reward", "rewards", "advantage", "advantages"),
        # What values are sorted into, as by searchsorted and bucketize.
        *("knots", "breakpoints", "boundaries"),
    }
)

#: How code makes logistic or Gumbel noise of uniform numbers: log(u) - log(1 - u), -log(-log(u)).
_NOISE = (
    r"\blog\({0}\)[^\n]*\blog(?:1p\(-\s*{0}\)|\(\s*1(?:\.0?)?\s*-\s*{0}\))",
    r"\blog\(\s*-\s*(?:torch\.)?log\(\s*{0}\b",
    r"-\s*{0}\.log\(\)\)\.log\(\)",
)


def is_made_to_noise(function: type, name: str) -> bool:
    """Whether the forward of a Function makes noise of the uniform numbers that are its argument
    ``name``: nobody differentiates by what was drawn."""
    try:
        text = source_text(function)
    except (OSError, TypeError):
        return False
    return any(re.search(pattern.format(re.escape(name)), text) for pattern in _NOISE)


def is_sorted_into(subject: Subject, position: int) -> bool:
    """Whether forward sorts other values into the input at ``position``, as into knots: a
    convention as that of their names. One forward call."""
    watched = Boundaries()
    watch_forward(subject, watched)
    value = subject.problem.inputs[position].value.detach()
    return any(value.dtype == held.dtype and torch.equal(value, held) for held in watched.found)


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
