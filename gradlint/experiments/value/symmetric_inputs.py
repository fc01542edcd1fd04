"""A gradient that is wrong at matrices, and right at symmetric ones, along symmetric directions.

An op may rely on matrices that its callers always make symmetric: nothing in forward fails where
they are not. Symmetric guesses from the start would hide transpositions, so they are tried only
where a gradient differs, and where the source of the op speaks of symmetry.

Matrices that were given and are symmetric stay so wherever the op is used. Of its gradient only the
symmetric part counts there: what backward adds to it without symmetry cannot be felt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch

from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.direction_projections import symmetric
from gradlint.experiments.finite.special_values import is_symmetric
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.numerics.judge import judge
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.targets.nodes import source_text
from gradlint.trace.op_io import OpRaised

#: Words of an author who relies on symmetry; not those for ranges, paddings and quantizers.
_SYMMETRY = re.compile(
    r"(?<!non-)(?<!not )\bsymmetr(?:y|ic)\b(?! (?:range|pad|quant|mode|loss|diff))"
    r"|\bsqrtm\b|\bmatrix square root|\bcovariance|\bpositive[- ](?:semi-?)?definite\b|\bspd\b",
    re.IGNORECASE,
)


def question_symmetry(subject: Subject, findings: Sequence[Finding]) -> None:
    """Make errors at guessed inputs warnings where the gradient is right at symmetric matrices, and
    the source of the op speaks of symmetry.

    Args:
        subject: the op.
        findings: wrong gradients; they are changed.
    """
    wrong = [item for item in findings if item.severity == "error"]
    if not wrong:
        return
    if subject.sample.origin != "inferred":
        _question_unfelt(subject, wrong)
        return
    if not _speaks_of_symmetry(subject):
        return
    made = _symmetric(subject)
    if not made or not _is_right(subject, made, {item.input for item in wrong}):
        return
    names = [f"`{subject.problem.inputs[position].name}`" for position in made]
    who = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} symmetric"
    for finding in wrong:
        finding.severity = "warning"
        finding.cause = None
        finding.cause_text = f"the gradient is right where {who}; the source speaks of symmetry"
        finding.help = (
            f"if {who} wherever the op is called, say so where it is documented, and give such "
            "inputs (--inputs or sample_inputs); otherwise backward lacks the other half of "
            "a sum with a transposed matrix"
        )


def _question_unfelt(subject: Subject, wrong: Sequence[Finding]) -> None:
    """Make errors warnings where given matrices are symmetric, and the gradient is right along
    symmetric directions; information where the source of the op speaks of symmetry."""
    given = {
        position: item.value
        for position, item in enumerate(subject.problem.inputs)
        if is_symmetric(item.value)
    }
    about = {subject.problem.inputs[position].name for position in given}
    unfelt = [item for item in wrong if item.input in about]
    if not unfelt or not _is_right(subject, given, {item.input for item in unfelt}):
        return
    spoken = _speaks_of_symmetry(subject)
    for finding in unfelt:
        finding.severity = "info" if spoken else "warning"
        finding.cause = None
        finding.cause_text = (
            f"`{finding.input}` is symmetric, and along symmetric directions the gradient is right"
            + ("; the source speaks of symmetry" if spoken else "")
        )
        finding.help = (
            f"if `{finding.input}` is symmetric wherever the op is called, say so where it is "
            "documented; otherwise give matrices that are not"
        )


def _is_right(
    subject: Subject, values: Mapping[int, torch.Tensor], names: Collection[str | None]
) -> bool:
    """Whether the gradients of the inputs ``names`` are right where some inputs have ``values``,
    symmetric matrices that move symmetrically."""
    there = Subject(subject.op, subject.sample, subject.settings)
    there.problem.patience = subject.problem.patience
    there.problem.preserve_state = subject.problem.preserve_state
    there.problem.put(values)
    wrong = [k for k, item in enumerate(there.problem.inputs) if item.name in names]
    project = list(subject.first_order_map.project or [None] * len(there.problem.inputs))
    for position in values:
        project[position] = symmetric
    function = replace(first_order(there.problem), project=project)
    try:
        judged = judge(function, seed=subject.seed, inputs=wrong).inputs
    except OpRaised:
        return False
    finally:
        subject.problem.forward_calls += there.problem.forward_calls
        subject.problem.backward_calls += there.problem.backward_calls
    return all(item.verdict in (AGREES, ROUNDED) for item in judged)


def _speaks_of_symmetry(subject: Subject) -> bool:
    op = subject.op
    owner = op.function or (type(op.module) if op.module is not None else op.defining)
    try:
        text = source_text(owner) if owner is not None else ""
    except (OSError, TypeError):
        return False
    return _SYMMETRY.search(text) is not None


def _symmetric(subject: Subject) -> Mapping[int, torch.Tensor]:
    """Position → symmetric part, of the inputs that are square matrices of no special form."""
    found = {}
    for position, item in enumerate(subject.problem.inputs):
        value = item.value
        square = value.dim() >= 2 and value.shape[-1] == value.shape[-2] > 1
        if not square or value.layout != torch.strided or value.is_complex():
            continue
        triangular = not bool(value.triu(1).any()) or not bool(value.tril(-1).any())
        if not triangular and not torch.allclose(value, value.mT):
            found[position] = (value + value.mT) / 2
    return found
