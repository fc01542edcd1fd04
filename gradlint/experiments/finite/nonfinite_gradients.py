"""Gradients that are not finite, compared with one-sided derivatives of the function."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradlint.experiments.finite.alike_magnitudes import needs_elements_far_apart
from gradlint.experiments.finite.extremes import (
    KINDS,
    ExtremePoint,
    inside_of_ranges,
    make_extremes,
    parameters_and_numbers,
    parameters_of,
    without_special,
)
from gradlint.experiments.finite.poles import divided_by_zeros
from gradlint.experiments.finite.special_values import is_log_of_scale
from gradlint.experiments.finiteness import values_of
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.one_sided_derivatives import DerivativePair, OneSidedDerivatives
from gradlint.experiments.singular_inputs import (
    gradients_under_autograd,
    replaces_what_is_not_finite,
    takes_zero_distances,
)
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding, Severity, Where
from gradlint.model.rule import Rule
from gradlint.numerics.products import all_finite
from gradlint.trace.op_io import OpRaised

#: Elements at which the function is measured, of those whose gradient is not finite.
LOOKED_AT, LOOKED_AT_EXTREMES = 8, 3

#: Dtypes whose numbers of a thousand are farther apart than the arguments of exp may be off: 4 in
#: bfloat16, 0.5 in float16.
COARSE = (torch.bfloat16, torch.float16)

#: Note on a gradient that is finite in float32 at the same large values.
NO_DIGITS = "not finite at large magnitudes, of which 16 bits keep too few digits"

HELP = (
    "backward divides by, takes the logarithm or root of, or overflows at a value that "
    "vanishes or saturates here: guard it (torch.where around the denominator, not around the "
    "quotient), or use a formula without it"
)


def at_the_sample(subject: Subject, rule: Rule) -> tuple[list[Finding], list[str]]:
    """Findings at the sample itself, one for each input, and notes on infinite derivatives."""
    make = subject.problem.values
    return _compare_with_slopes(subject, rule, subject.run.gradients or [], make, LOOKED_AT)


#: Extremes at which a kink says nothing: the angle of a rotation has no derivative at the identity,
#: nor has a distance where two points are in one place.
WITHOUT_KINKS = ("identity", "coincident")


def at_extremes(
    subject: Subject, rule: Rule, reported: set[str]
) -> tuple[list[Finding], list[str]]:
    """Findings at extreme values, one for each input that is not in ``reported``: the first that
    nothing explains, else the first; and notes."""
    findings: list[Finding] = []
    explained: list[Finding] = []
    notes = [subject.once(make_extremes).reason] if subject.once(make_extremes).reason else []
    for extreme in subject.once(make_extremes).points:
        for point in _together_then_alone(subject, extreme):
            reported = reported | {finding.input or "" for finding in findings}
            # Single elements are of the sample's kind: what explains a NaN where all inputs are
            # special at once does not explain it there.
            alike = KINDS[point.name] == "sample"
            known = reported if alike else reported | {item.input or "" for item in explained}
            more, said = _at_point(subject, rule, known, point)
            findings += [item for item in more if not item.grounds.explained]
            explained += [item for item in more if item.grounds.explained]
            notes += said
    told = {item.input for item in findings}
    first = {item.input: item for item in reversed(explained) if item.input not in told}
    return findings + list(first.values())[::-1], list(dict.fromkeys(notes))


def _together_then_alone(subject: Subject, extreme: ExtremePoint) -> Iterator[ExtremePoint]:
    """``extreme`` if gradients are known there; then, at large magnitudes, each input whose
    gradient is not finite with the sample's own values of all others: between numbers of 10000 an
    angle turns so often that no slope can be measured, and the scale beside it has one."""
    if not extreme.finite or extreme.gradients is None:
        return
    yield extreme
    if extreme.name != "large":
        return
    altered = _altered(subject, extreme.make())
    for position, gradient in enumerate(extreme.gradients):
        dense = None if gradient is None else values_of(gradient)
        others = [other for other in altered if other != position]
        if dense is None or bool(dense.isfinite().all()) or position not in altered or not others:
            continue
        alone = without_special(subject, extreme, others)
        if alone.finite and alone.gradients is not None:
            yield alone


def _at_point(
    subject: Subject, rule: Rule, reported: set[str], extreme: ExtremePoint
) -> tuple[list[Finding], list[str]]:
    """Findings at one point, less what something else explains; and notes."""
    notes: list[str] = []
    more = _at_extreme(subject, rule, reported, extreme)
    if more and extreme.name == "large":
        coarse = _without_digits(subject, extreme)
        notes += [f"gradient for {name}: {NO_DIGITS}" for name in sorted(coarse)]
        more = [finding for finding in more if finding.input not in coarse]
    if more:
        more = _away_from_poles(subject, rule, reported, extreme, more)
        more = _inside_of_ranges(subject, rule, reported, extreme, more)
        more = _with_own_parameters(subject, rule, reported, extreme, more)
        more = _as_autograd_has_it(subject, extreme, more)
        more = _between_equal_points(subject, extreme, more)
        more = _between_elements_far_apart(subject, extreme, more)
    return more, notes


def _without_digits(subject: Subject, extreme: ExtremePoint) -> set[str]:
    """The inputs whose gradient is not finite because the dtype has too few digits, and not because
    it has too small a range: in float32 it is finite at the same values, and in bfloat16, which has
    the same range, it is not."""
    problem = extreme.problem
    dtypes = {item.value.dtype for item in problem.inputs if item.value.is_floating_point()}
    if len(dtypes) != 1 or not dtypes <= set(COARSE):
        return set()
    exact = _finite_in(subject, extreme, torch.float32)
    if dtypes == {torch.bfloat16}:
        return exact
    return exact - _finite_in(subject, extreme, torch.bfloat16)


def _finite_in(subject: Subject, extreme: ExtremePoint, dtype: torch.dtype) -> set[str]:
    """The inputs whose gradient is finite where the op computes in ``dtype``."""
    problem = extreme.problem.in_dtype(dtype)
    values = [value.to(dtype) for value in extreme.make()]
    try:
        found = problem.pull({k: v.to(dtype) for k, v in subject.run.cotangents.items()}, values)
    except OpRaised:
        return set()
    finally:
        subject.problem.forward_calls += problem.forward_calls
        subject.problem.backward_calls += problem.backward_calls
    pairs = zip(problem.inputs, found, strict=True)
    return {item.name for item, grad in pairs if grad is None or all_finite(grad)}


def _at_extreme(
    subject: Subject, rule: Rule, reported: set[str], extreme: ExtremePoint
) -> list[Finding]:
    left = [
        None if item.name in reported else gradient
        for item, gradient in zip(subject.problem.inputs, extreme.gradients or [], strict=True)
    ]
    make = extreme.make
    return _compare_with_slopes(subject, rule, left, make, LOOKED_AT_EXTREMES, extreme)[0]


def _away_from_poles(
    subject: Subject,
    rule: Rule,
    reported: set[str],
    extreme: ExtremePoint,
    findings: list[Finding],
) -> list[Finding]:
    """``findings`` at an extreme; where forward divides by zeros of inputs there, those that are
    there with the sample's own values of these inputs, and the others as explained by that."""
    divisors = divided_by_zeros(subject, extreme.make(), extreme.problem)
    if not divisors:
        return findings
    instead = without_special(subject, extreme, divisors)
    still = []
    if instead.finite and instead.gradients is not None:
        still = _at_extreme(subject, rule, reported, instead)
    stands = {finding.input for finding in still}
    explained = [
        replace(finding, grounds=replace(finding.grounds, explained="divisor"))
        for finding in findings
        if finding.input not in stands
    ]
    return still + explained


def _inside_of_ranges(
    subject: Subject,
    rule: Rule,
    reported: set[str],
    extreme: ExtremePoint,
    findings: list[Finding],
) -> list[Finding]:
    """``findings`` at single special elements; those that need an element on the border of what
    its input holds at the sample are seen at inputs of another kind than the sample's: zero where
    all are positive, or one where all lie between zero and one, may not be meant. Zero in a
    module's own parameter that starts without one, or in a single number, explains them: training
    moves by steps that miss a single number, and only data are zero as a rule."""
    if extreme.name != "single":
        return findings
    own = parameters_and_numbers(subject)
    instead = inside_of_ranges(subject, extreme, zeros_of=own) if own else None
    found = []
    if instead is not None:
        stands = {item.input for item in _still_there(subject, rule, reported, instead)}
        found = _explained_by_parameters(findings, stands, "special")
        findings = [item for item in findings if item.input in stands]
    instead = inside_of_ranges(subject, extreme) if findings else None
    if instead is None:
        return findings + found
    still = _still_there(subject, rule, reported, instead)
    stands = {item.input for item in still}
    outside = [
        replace(item, grounds=replace(item.grounds, where="special"))
        for item in findings
        if item.input not in stands
    ]
    return still + outside + found


def _with_own_parameters(
    subject: Subject,
    rule: Rule,
    reported: set[str],
    extreme: ExtremePoint,
    findings: list[Finding],
) -> list[Finding]:
    """``findings`` at large magnitudes, or at zero; those that are not there with a module's
    parameters and logarithms of scales as they are, and data as large, are explained by that: data
    come in any unit, and training moves a parameter that starts near one, as the logarithm of a
    temperature, nowhere near 10000. Likewise for parameters of nothing but zeros that start
    otherwise, or a single number: training moves by steps that miss it, and data alone are zero as
    a rule."""
    if extreme.name == "large":
        logs = [k for k, item in enumerate(subject.problem.inputs) if is_log_of_scale(item.name)]
        own = {*parameters_of(subject), *logs}
    elif extreme.name == "zeros":
        values = subject.problem.values()
        own = {k for k in parameters_and_numbers(subject) if bool((values[k] != 0).any())}
    else:
        return findings
    if not findings or not own:
        return findings
    instead = without_special(subject, extreme, own)
    stands = {item.input for item in _still_there(subject, rule, reported, instead)}
    kept = [item for item in findings if item.input in stands]
    where: Where = "extreme" if extreme.name == "large" else "special"
    return kept + _explained_by_parameters(findings, stands, where)


def _as_autograd_has_it(
    subject: Subject, extreme: ExtremePoint, findings: list[Finding]
) -> list[Finding]:
    """``findings`` at an extreme; those elements for which autograd through forward's own
    operations is not finite either are explained by that: the formula of forward has no finite
    derivative there, and an op that PyTorch differentiates would be no better. Not where forward
    itself puts other numbers in the place of those that are not finite: there, these are meant."""
    if all(item.grounds.explained for item in findings):
        return findings
    if replaces_what_is_not_finite(subject, extreme.problem, extreme.make()):
        return findings
    plain = gradients_under_autograd(subject, extreme.problem, extreme.make())

    def explained(item: Finding) -> bool:
        value = plain.get(item.input or "")
        return value is not None and not bool(value[tuple(item.index or ())].isfinite())

    return [
        replace(item, grounds=replace(item.grounds, explained="singular"))
        if not item.grounds.explained and explained(item)
        else item
        for item in findings
    ]


def _between_equal_points(
    subject: Subject, extreme: ExtremePoint, findings: list[Finding]
) -> list[Finding]:
    """``findings`` at an extreme; those at the kink of a distance between points of which all are
    equal are explained by that: a bond between two atoms at one place has no direction. Where the
    function is smooth there, as a kernel of the distance is, it has a derivative, which is zero;
    but not where it is so only because all other inputs are zero too. What is explained for the
    points explains what is found for inputs that are as at the sample, as the size of a box."""
    if extreme.name not in ("zeros", "ties") or all(f.grounds.explained for f in findings):
        return findings
    values = extreme.make()
    positions = {item.name: k for k, item in enumerate(subject.problem.inputs)}
    points = set(_altered(subject, values))

    def kinked(item: Finding) -> bool:
        position = positions[item.input or ""]
        alone = subject.problem.values()
        alone[position] = values[position]
        kink = any(
            not OneSidedDerivatives(subject, extreme.problem, point)
            .at(position, list(item.index or ()))
            .smooth
            for point in (values, alone)
        )
        return kink and takes_zero_distances(subject, extreme.problem, values, position)

    unexplained = [item for item in findings if not item.grounds.explained]
    found = {item.input for item in unexplained if kinked(item)}
    if any(positions[name or ""] in points for name in found):
        found |= {f.input for f in unexplained if positions[f.input or ""] not in points}
    return [
        replace(item, grounds=replace(item.grounds, explained="singular"))
        if item in unexplained and item.input in found
        else item
        for item in findings
    ]


def _between_elements_far_apart(
    subject: Subject, extreme: ExtremePoint, findings: list[Finding]
) -> list[Finding]:
    """``findings`` at large magnitudes; those that are nowhere where the elements of an input are
    as large and differ by little are explained by that."""
    if extreme.name != "large" or all(item.grounds.explained for item in findings):
        return findings
    positions = {item.name: k for k, item in enumerate(subject.problem.inputs)}

    def explained(item: Finding) -> bool:
        position, index = positions[item.input or ""], item.index or ()
        return needs_elements_far_apart(subject, extreme, position, index)

    return [
        replace(item, grounds=replace(item.grounds, explained="far-apart"))
        if not item.grounds.explained and explained(item)
        else item
        for item in findings
    ]


def _still_there(
    subject: Subject, rule: Rule, reported: set[str], instead: ExtremePoint
) -> list[Finding]:
    """What is found at ``instead``."""
    if not instead.finite or instead.gradients is None:
        return []
    return _at_extreme(subject, rule, reported, instead)


def _explained_by_parameters(
    findings: Sequence[Finding], stands: set[str | None], where: Where
) -> list[Finding]:
    """Those of ``findings`` that are not there with other values of a module's parameters."""
    return [
        replace(item, grounds=replace(item.grounds, where=where, explained="parameter"))
        for item in findings
        if item.input not in stands
    ]


def _compare_with_slopes(
    subject: Subject,
    rule: Rule,
    gradients: Sequence[torch.Tensor | None],
    make: Callable[[], list[torch.Tensor]],
    looked_at: int,
    extreme: ExtremePoint | None = None,
) -> tuple[list[Finding], list[str]]:
    findings, notes = [], []
    slopes: OneSidedDerivatives | None = None
    values: list[torch.Tensor] = []
    for index, gradient in enumerate(gradients):
        dense = None if gradient is None else values_of(gradient)
        if dense is None or bool(dense.isfinite().all()):
            continue
        values = values or make()
        slopes = slopes or OneSidedDerivatives(
            subject, extreme.problem if extreme else None, values
        )
        joint = None
        if extreme is not None and extreme.name != "single":
            # Where whole tensors are special, f may be smooth in single elements and not as a
            # whole: a matrix of zeros, 0·log 0.
            joint = slopes.along(_altered(subject, values))
            if extreme.name == "large" and not joint.known:
                # A sine of another input, of which large steps show nothing, hides none of this.
                joint = slopes.along([index])
            if not joint.known:
                continue
            if joint.smooth and not slopes.are_those_of_a_gradient(index):
                name = subject.problem.inputs[index].name
                notes.append(f"gradient for {name} is not finite where the function has none")
                continue
        bad = (~torch.isfinite(dense)).nonzero().tolist()
        stride = max(1, len(bad) // looked_at)
        for where in bad[::stride][:looked_at]:
            seen = slopes.at(index, where)
            if extreme is not None and extreme.name in WITHOUT_KINKS and _has_kink(seen, joint):
                continue
            if seen.finite_for(complex(dense[tuple(where)].item())):
                there = values[index][tuple(where)]
                severity = _severity(extreme, seen, joint)
                findings.append(
                    _finding(
                        subject,
                        rule,
                        index,
                        dense,
                        where,
                        len(bad),
                        there,
                        seen,
                        _derivative_in_words(seen, joint),
                        extreme,
                        severity,
                    )
                )
                break
        else:
            name = subject.problem.inputs[index].name
            notes.append(f"gradient for {name} is not finite where its derivative is not either")
    return findings, notes


def _has_kink(*seen: DerivativePair | None) -> bool:
    """Whether the function has two slopes somewhere."""
    return any(
        pair is not None and None not in (pair.right, pair.left) and not pair.smooth
        for pair in seen
    )


def _derivative_in_words(*seen: DerivativePair | None) -> str:
    """What the function has where it was measured: at a kink there is no derivative."""
    known = [pair for pair in seen if pair is not None]
    if all(pair.smooth for pair in known):
        return "a finite derivative"
    if all(pair.right is not None and pair.left is not None for pair in known):
        return "finite one-sided derivatives"
    return "a finite one-sided derivative"


def _altered(subject: Subject, values: Sequence[torch.Tensor]) -> list[int]:
    """Positions of the inputs that differ from the sample; all positions where none does."""
    sample = subject.problem.values()
    pairs = enumerate(zip(sample, values, strict=True))
    return [k for k, (a, b) in pairs if not torch.equal(a, b)] or list(range(len(sample)))


def _finding(
    subject: Subject,
    rule: Rule,
    index: int,
    gradient: torch.Tensor,
    where: list[int],
    count: int,
    there: torch.Tensor,
    seen: DerivativePair,
    derivative: str,
    extreme: ExtremePoint | None,
    severity: Severity | None,
) -> Finding:
    item = subject.problem.inputs[index]
    value = gradient[tuple(where)]
    kind = "NaN" if bool(value.isnan()) else "infinite"
    at = f" at {where}" if where else ""
    returned: Any = value.item()
    measured = next(d for d in (seen.right, seen.left) if d is not None)
    more = f" ({count} of {gradient.numel()} elements)" if count > 1 else ""
    condition = f" {extreme.words_at(index, where)}" if extreme is not None else ""
    comma = ":" if condition else ", where"
    return subject.finding(
        rule,
        f"gradient for `{item.name}` is {kind}{at}{more}{condition}{comma} the function has "
        f"{derivative}{' there' if condition else ''}",
        severity=severity,
        input=item.name,
        index=where,
        place=gradient_place(subject, item),
        evidence={
            "elements": [
                {
                    "index": where,
                    "returned": returned if isinstance(returned, float) else str(returned),
                    "measured": measured,
                    "error": math.nan if kind == "NaN" else math.inf,
                }
            ],
            "not_finite": count,
            f"{item.name} there": repr(there.item()),
        },
        grounds=subject.grounds(where=KINDS[extreme.name] if extreme is not None else "sample"),
        help=HELP,
    )


def _severity(extreme: ExtremePoint | None, *seen: DerivativePair | None) -> Severity | None:
    """At values that the user did not give: a warning at kinks and edges of the domain, where
    conventions differ, and information at numbers that hardly occur."""
    if extreme is None:
        return None
    if extreme.name == "tiny":
        return "info"
    return None if all(side is None or side.smooth for side in seen) else "warning"
