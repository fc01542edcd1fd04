"""The gradient where inputs whose elements are all equal have other values.

A weight of ones that backward leaves out makes no difference, nor does a bias of zeros in the
argument of a nonlinearity. Modules start at such values, and handwritten samples often use them.
"""

from __future__ import annotations

import torch

from gradlint.experiments.finite.value_ranges import range_of
from gradlint.experiments.judge_at_other_inputs import WRONG, affords_another, judge_at_other_inputs
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.findings_elsewhere import findings_elsewhere
from gradlint.experiments.value.other_float_arguments import INSTEAD_OF_ZERO
from gradlint.model.report import Finding
from gradlint.model.rule import Rule
from gradlint.trace.op_io import Input

#: Elements are multiplied by factors drawn between these: they keep their sign and their size.
LEAST, MOST = 0.5, 1.5

#: A single number says little by being equal to itself, unless it is one of these.
NEUTRAL = (0.0, 1.0, -1.0)

#: Inputs of which each is moved alone to find the one that matters; of more, the first ones.
MOST_ALONE = 4


def judge_unequal_elements(subject: Subject, rule: Rule) -> list[Finding]:
    """Findings of ``rule`` where gradients are wrong once equal elements differ."""
    inputs = subject.problem.inputs
    moved = unequal_elements(subject)
    if not moved or not affords_another(subject, subject.plan.reserved):
        return []
    seen = judge_at_other_inputs(subject, subject.sample, values=moved)
    if seen.verdict != WRONG:
        return []
    for position in list(moved)[:MOST_ALONE] if len(moved) > 1 else ():
        alone = judge_at_other_inputs(subject, subject.sample, values={position: moved[position]})
        if alone.verdict == WRONG:
            seen, moved = alone, {position: moved[position]}
            break
    equal = " and ".join(f"`{inputs[k].name}` is {_first(inputs[k]):g} everywhere" for k in moved)
    names = " and ".join(f"`{inputs[k].name}`" for k in moved)
    findings = findings_elsewhere(
        subject,
        rule,
        seen,
        f"the elements of {names} differ",
        cause="argument-left-out",
        kind="sample",
        help=f"use {names} in backward wherever forward does: its values at the sample hide "
        "the difference",
    )
    for finding in findings:
        said = finding.cause_text.removeprefix("argument left out: ")
        more = f"; {said}" if said else ""
        finding.cause_text = f"argument left out: where {equal} the gradient is right{more}"
    return findings


def unequal_elements(subject: Subject) -> dict[int, torch.Tensor]:
    """Position → other values, for each input that is one number throughout."""
    return {
        position: value
        for position, item in enumerate(subject.problem.inputs)
        if (value := _moved(subject, position, item)) is not None
    }


def _moved(subject: Subject, position: int, item: Input) -> torch.Tensor | None:
    """Other values of an input that is one number throughout; None where it is not, or where its
    domain is not known to hold them."""
    value = item.value
    if not value.is_floating_point() or value.layout != torch.strided or not value.numel():
        return None
    first = _first(item)
    if not bool((value == first).all()) or not torch.isfinite(value).all():
        return None
    if value.numel() == 1 and first not in NEUTRAL:
        return None
    if (subject.first_order_map.project or {position: None})[position] is not None:
        return None
    generator = torch.Generator().manual_seed(subject.seed + position)
    share = torch.rand(value.shape, generator=generator, dtype=torch.float64)
    factors = LEAST + (MOST - LEAST) * share
    found = (factors * (first or INSTEAD_OF_ZERO)).to(value.device, value.dtype)
    allowed = range_of(subject.sample.domains.get(item.name, ""), value)
    if not all(allowed.holds(float(end)) for end in (found.min(), found.max())):
        return None
    return found


def _first(item: Input) -> float:
    return float(item.value.reshape(-1)[0])
