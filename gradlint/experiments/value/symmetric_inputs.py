"""A gradient that is wrong at guessed matrices, and right at symmetric ones.

An op may rely on matrices that its callers always make symmetric: nothing in forward fails where
they are not. Symmetric guesses from the start would hide transpositions, so they are tried only
where a gradient differs, and where the source of the op speaks of symmetry.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch

from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.numerics.judge import judge
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.trace.op_io import OpRaised

#: Words of an author who relies on symmetry; not those for ranges, paddings and quantizers.
_SYMMETRY = re.compile(
    r"(?<!non-)(?<!not )\bsymmetr(?:y|ic)\b(?! (?:range|pad|quant|mode|loss|diff))", re.IGNORECASE
)


def question_symmetry(subject: Subject, findings: Sequence[Finding]) -> None:
    """Make errors at guessed inputs warnings where the gradient is right at symmetric matrices, and
    the source of the op speaks of symmetry.

    Args:
        subject: the op.
        findings: wrong gradients; they are changed.
    """
    wrong = [item for item in findings if item.severity == "error"]
    if not wrong or subject.sample.origin != "inferred" or not _speaks_of_symmetry(subject):
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


def _is_right(
    subject: Subject, values: Mapping[int, torch.Tensor], names: Collection[str | None]
) -> bool:
    """Whether the gradients of the inputs ``names`` are right where some inputs have ``values``."""
    there = Subject(subject.op, subject.sample, subject.settings)
    there.problem.patience = subject.problem.patience
    there.problem.preserve_state = subject.problem.preserve_state
    there.problem.put(values)
    wrong = [k for k, item in enumerate(there.problem.inputs) if item.name in names]
    function = replace(first_order(there.problem), project=subject.first_order_map.project)
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
        text = inspect.getsource(owner) if owner is not None else ""
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
