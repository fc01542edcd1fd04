"""The gradient at other values of float arguments.

A scalar that forward multiplies by and backward leaves out makes no difference at 1, nor does a
shift at 0, or an exponent at 2 that backward assumes to be 2. Samples often have such values, and
defaults even more so.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gradlint.experiments.judge_at_other_inputs import (
    REFUSED,
    RIGHT,
    WRONG,
    JudgementElsewhere,
    affords_another,
    judge_at_other_inputs,
    same_outputs,
)
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.findings_elsewhere import findings_elsewhere
from gradlint.model.report import Finding
from gradlint.model.rule import Rule
from gradlint.model.sample import Sample

#: Factors of the distance from zero (of ±1 and less), or from ±1 (beyond), the first that forward
#: takes: arguments stay on their side of -1, 0 and 1, where domains end (heuristic).
FACTORS = (0.63, 1.7)

#: What zero becomes (heuristic: inside the unit interval).
INSTEAD_OF_ZERO = 0.37

#: Arguments of which each is moved alone to find the one that matters; of more, the first ones.
MOST_ALONE = 4


def judge_other_floats(subject: Subject, rule: Rule) -> tuple[list[Finding], str]:
    """Findings of ``rule`` where gradients are wrong at other float arguments, and a note."""
    sample = with_defaults(subject)
    names = {name: value for name, value in _leaves(subject, sample) if _moves(value)}
    if not names or not affords_another(subject, subject.plan.reserved):
        return [], ""
    seen, moved = _first_taken(subject, sample, names)
    if seen.verdict == REFUSED:
        return [], ""
    if seen.verdict == WRONG and len(names) > 1:
        seen, moved = _alone(subject, sample, names) or (seen, moved)
    where = " and ".join(f"`{name}` is {value:g}" for name, value in moved.items())
    if seen.verdict in (RIGHT, WRONG) and subject.coverage is not None:
        subject.coverage.moved |= moved.keys()
    if seen.verdict == WRONG:
        return [
            _with_right_values(item, names, moved) for item in _wrong(subject, rule, seen, where)
        ], ""
    if seen.verdict != RIGHT:
        return [], f"inconclusive where {where}: {seen.verdict}"
    return [], ""


def _alone(
    subject: Subject, sample: Sample, names: Mapping[str, float]
) -> tuple[JudgementElsewhere, dict[str, float]] | None:
    """What is seen with the one argument moved that matters; one that changes backward only counts
    where no other does."""
    least = None
    for name in list(names)[:MOST_ALONE]:
        found = _first_taken(subject, sample, {name: names[name]})
        if found[0].verdict != WRONG:
            continue
        if not same_outputs(found[0].outputs, subject.run.outputs):
            return found
        least = least or found
    return least


def _wrong(subject: Subject, rule: Rule, seen: JudgementElsewhere, where: str) -> list[Finding]:
    only_backward = same_outputs(seen.outputs, subject.run.outputs)
    help = (
        "forward returns the same at both values: it is backward alone that depends on the argument"
        if only_backward
        else "use the argument in backward wherever forward does: keep it on ctx, and derive the"
        " formula for every value of it"
    )
    return findings_elsewhere(
        subject,
        rule,
        seen,
        where,
        cause="argument-of-backward-only" if only_backward else "argument-left-out",
        help=help,
        kind="sample",
        explained="backward-only" if only_backward else None,
    )


def _with_right_values(
    finding: Finding, before: Mapping[str, float], moved: Mapping[str, float]
) -> Finding:
    """``finding`` with the values at which the gradient is right."""
    right = " and ".join(f"`{name}` is {before[name]:g}" for name in moved)
    what = "used by backward only" if finding.grounds.explained else "argument left out"
    said = finding.cause_text.removeprefix(f"{what}: ")  # a hypothesis may say the same of it
    more = f"; {said}" if said else ""
    finding.cause_text = f"{what}: where {right} the gradient is right{more}"
    return finding


def with_defaults(subject: Subject) -> Sample:
    """The sample with those float arguments written out that it leaves to their defaults."""
    sample, signature = subject.sample, subject.op.signature
    if signature is None:
        return sample
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(signature.parameters.values())
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return sample
    missing = [
        p for p in parameters[len(sample.args) :] if p.kind in kinds and p.name not in sample.kwargs
    ]
    wanted = [k for k, p in enumerate(missing) if _moves(p.default)]
    if not wanted or sample.kwargs:
        return sample
    added = missing[: wanted[-1] + 1]
    if any(p.default is inspect.Parameter.empty for p in added):
        return sample
    return replace(sample, args=(*sample.args, *(p.default for p in added)))


def with_other_floats(subject: Subject) -> Sample | None:
    """The sample with other values of all its float arguments; None where it has none."""
    sample = with_defaults(subject)
    names = {name: value for name, value in _leaves(subject, sample) if _moves(value)}
    moved = {name: _moved(value, FACTORS[0]) for name, value in names.items()}
    return with_values(subject, sample, moved) if moved else None


def _moves(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _moved(value: float, factor: float) -> float:
    if abs(value) > 1.0:
        one = math.copysign(1.0, value)
        return one + factor * (value - one)
    return factor * value or INSTEAD_OF_ZERO


def _leaves(subject: Subject, sample: Sample) -> list[tuple[str, Any]]:
    return list(sample.named_leaves(subject.op.signature))


def _first_taken(
    subject: Subject, sample: Sample, names: Mapping[str, float]
) -> tuple[JudgementElsewhere, dict[str, float]]:
    """What is seen with the arguments ``names`` moved, at the first values that forward takes."""
    found = None
    for factor in FACTORS:
        moved = {name: _moved(value, factor) for name, value in names.items()}
        found = judge_at_other_inputs(subject, with_values(subject, sample, moved)), moved
        if found[0].verdict != REFUSED:
            break
    assert found is not None
    return found


def with_values(subject: Subject, sample: Sample, values: Mapping[str, Any]) -> Sample:
    """``sample`` with other leaves, by name."""
    given = iter([values.get(name, value) for name, value in _leaves(subject, sample)])
    args = tuple(_mapped(value, lambda _: next(given)) for value in sample.args)
    kwargs = {key: _mapped(value, lambda _: next(given)) for key, value in sample.kwargs.items()}
    return replace(sample, args=args, kwargs=kwargs)


def _mapped(value: Any, convert: Callable[[Any], Any]) -> Any:
    """``value`` with every leaf replaced, in the order of ``Sample.named_leaves``."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(part, convert) for part in value))
    if isinstance(value, (list, tuple)) and value:
        return type(value)(_mapped(part, convert) for part in value)
    if isinstance(value, dict) and value:
        return {key: _mapped(part, convert) for key, part in value.items()}
    return convert(value)
