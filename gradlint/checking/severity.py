"""Only as loud as the evidence: the one place where the severity of a finding is decided.

A rule says the highest severity that its finding can have, and gives the evidence as
:class:`gradlint.model.report.Grounds`. What is decided here can lower the severity, never raise it.

The table is :data:`TABLE`; it is also in gradlint/docs/rules.md, and `gradlint explain severity`
shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gradlint.model.report import SEVERITIES, Explanation, Finding, Grounds, Severity, Where
from gradlint.model.rule import Outcome
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import by_code, longest_match

#: The policy as a reader sees it: severity and when a finding has it.
TABLE: tuple[tuple[Severity, str], ...] = (
    (
        "error",
        "silently wrong on inputs that you gave, or of the same kind, and materially: the gradient,"
        " or an element beside its own size, is off by more than 1e-3, or a cause explains the"
        " whole error; a crash; a broken contract",
    ),
    (
        "warning",
        "silently wrong, or NaN, outside of that kind only: another number of axes, no dimensions,"
        " no elements, an optional tensor that the given inputs leave out, all elements of an input"
        " special at once, extreme magnitudes, and NaN at a"
        " single zero where all given values have one sign, or at a one where they lie between zero"
        " and one; backward raises at inputs that were guessed, for their sizes or values, or where"
        " gradlint moved an option; a wrong"
        " gradient where a function among the arguments was"
        " guessed, or at guessed inputs from which only a clamp keeps forward"
        " finite, or that changes with random numbers or with an argument that forward does not"
        " use, or that lies in the tangent space of a group, or that documentation calls a natural"
        " or Riemannian gradient, relevance or a substitute, or that is right for what an"
        " orthonormal basis spans, or of a surrogate: forward returns its input, or is a staircase"
        " that changes as backward says over many stairs, or calls a Function that rounds or steps"
        " and explains the error, or backward goes by the sign of grad_output; second"
        " derivatives silently lost",
    ),
    (
        "info",
        "raises outside of that kind, with mixed dtypes or under a transform, or refuses openly"
        " (NotImplementedError, a dtype that nothing promises, a no_grad decorator, no backward"
        " in a Function that has a vmap or jvp of its own); a difference that is smaller than"
        " 1e-3, that no element shows beyond its own error bar, or that the tolerance of an"
        " iterative forward or backward, its number of iterations where nobody gave one, a"
        " documented surrogate or stop of gradients, or a surrogate that is usual in a Function"
        " inside explains, or a slope that backward clamps; no gradient for an input that the"
        " documentation calls a constant, or for which a Function inside returns None where that"
        " looks meant; a function that was guessed and that backward calls, or attributes of a"
        " guessed object that backward reads and forward does not; NaN where forward divides by"
        " an input that is zero, or that forward returns where inputs were guessed; digits that"
        " cancel at large magnitudes or at a size that gradlint chose; numbers that forward keeps"
        " in 8 bits for backward; several values that forward puts in one place, at indices chosen"
        " by gradlint; a number moved by gradlint that only backward uses, or below"
        " which it bounds what it only kept from zero; values chosen by gradlint from which only a"
        " clamp keeps forward finite; an operand that broadcasts where nothing"
        " says that this is meant; a size at"
        " which forward clamps to an empty range, solves with a singular matrix, values break a"
        " documented bound, an index falls below zero or more is selected than there is, a mask"
        " that leaves nothing of a row, or a size or values that gradlint chose"
        " at which forward has no finite derivative by its own operations; NaN at a zero"
        " of a parameter of a module that starts without one, or of a single number beside tensors,"
        " or at extreme magnitudes of such a parameter, or only where large elements of one input"
        " lie hundreds apart; an overflow in"
        " forward ten times beyond given values that all have one sign;"
        " anything in PyTorch's own code",
    ),
)

#: Relative error above which a gradient, or one of its elements, is materially wrong (heuristic: a
#: solver that stops at 1e-6, a truncated series and float32 inside are off by 1e-7 to 1e-4, and
#: training does not notice; a factor or a term that is forgotten is rarely below 1e-2).
MATERIAL = 1e-3

#: Inputs of the kind that the user gave.
SAME_KIND: frozenset[Where] = frozenset({"sample", "other-size"})

#: Circumstances in which a silent fault is as bad as at the sample: the inputs are the user's.
AS_GIVEN: frozenset[Where] = SAME_KIND | {"mixed-dtypes", "transform"}

#: What explains a difference by how precisely something is computed or measured, or nothing does:
#: such a difference limits what is told of all others. Whatever else explains one says that values
#: or sizes are hardly meant, or the gradient another one, and nothing of how well others were
#: measured.
LIMITING: frozenset[Explanation | None] = frozenset({None, "solver", "measurement", "stored"})


@dataclass(frozen=True)
class Reason:
    """One line of the policy.

    Args:
        most: the highest severity where it applies.
        words: why, for a reader.
        applies: whether it does.
    """

    most: Severity
    words: str
    applies: Callable[[Grounds], bool]


def is_material(grounds: Grounds) -> bool:
    """Whether the error is large, or its cause is known; True for faults that have no size."""
    errors = [e for e in (grounds.relative_error, grounds.element_error) if e is not None]
    return not errors or grounds.confirmed or not max(errors) <= MATERIAL


def is_undecided(grounds: Grounds) -> bool:
    """Whether elements were measured, and none differs by more than its own error bar."""
    return grounds.beyond_bar is False and not grounds.confirmed


#: The policy, in the order of asking: the first reason that applies to a finding is given for it,
#: unless a later one lowers its severity further.
POLICY = (
    Reason(
        "info",
        "only PyTorch's own code is involved",
        lambda g: g.torch_owned,
    ),
    Reason(
        "info",
        "it says openly that it does not support this",
        lambda g: g.refused,
    ),
    Reason(
        "info",
        "forward or backward iterates: how far it converges explains the difference",
        lambda g: g.explained == "solver",
    ),
    Reason(
        "info",
        "the limits of the measurement explain the difference",
        lambda g: g.explained == "measurement",
    ),
    Reason(
        "info",
        "the documentation tells of a surrogate, and the gradient is that surrogate",
        lambda g: g.explained == "surrogate",
    ),
    Reason(
        "info",
        "a Function inside takes steps, and its gradient is usual in place of their derivative",
        lambda g: g.explained == "usual",
    ),
    Reason(
        "info",
        "backward clamps the slope of forward to bounds, and is right within them",
        lambda g: g.explained == "clipped",
    ),
    Reason(
        "info",
        "the documentation says that it is a constant, and it has no gradient",
        lambda g: g.explained == "constant",
    ),
    Reason(
        "info",
        "a Function inside returns None for it, and nothing says that a gradient is meant",
        lambda g: g.explained == "no-gradient",
    ),
    Reason(
        "info",
        "forward itself is not finite there, and the inputs were guessed: none may be meant there",
        lambda g: g.explained == "undefined",
    ),
    Reason(
        "info",
        "forward divides by an input that is zero there, which is hardly meant",
        lambda g: g.explained == "divisor",
    ),
    Reason(
        "info",
        "forward computes another function there, and may take such arguments by accident only",
        lambda g: g.explained == "other-function",
    ),
    Reason(
        "info",
        "forward leaves elements unread there, and takes such a length by accident",
        lambda g: g.explained == "unread",
    ),
    Reason(
        "info",
        "the inputs were guessed, and it depends on the sign of others, which may be required",
        lambda g: g.explained == "signs",
    ),
    Reason(
        "info",
        "the number that was moved changes backward only: forward returns the same",
        lambda g: g.explained == "backward-only",
    ),
    Reason(
        "info",
        "the bound that was moved is so small by itself that it only keeps from dividing by zero",
        lambda g: g.explained == "guard",
    ),
    Reason(
        "info",
        "forward takes it by broadcasting, for which nothing says that it is meant",
        lambda g: g.explained == "broadcast",
    ),
    Reason(
        "info",
        "forward clamps to an empty range there, solves with a singular matrix, values break a"
        " documented bound, an index falls below zero, more is selected than there is, or a mask"
        " leaves nothing of a row: hardly meant",
        lambda g: g.explained == "degenerate",
    ),
    Reason(
        "info",
        "forward's own operations have no finite derivative there",
        lambda g: g.explained == "singular",
    ),
    Reason(
        "info",
        "a parameter is exactly zero there, or it or the logarithm of a scale is extremely large",
        lambda g: g.explained == "parameter",
    ),
    Reason(
        "info",
        "forward overflows there, and all given values have that sign and are ten times smaller",
        lambda g: g.explained == "far",
    ),
    Reason(
        "info",
        "it takes elements of one input that lie hundreds apart: as large ones and nearer are fine",
        lambda g: g.explained == "far-apart",
    ),
    Reason(
        "info",
        "forward puts several values in one place there, and which of them stays is not defined",
        lambda g: g.explained == "overwritten",
    ),
    Reason(
        "info",
        "digits cancel there: what differs is rounding",
        lambda g: g.explained == "rounding",
    ),
    Reason(
        "info",
        "forward keeps numbers in 8 bits for backward, which is right without that",
        lambda g: g.explained == "stored",
    ),
    Reason(
        "info",
        "backward calls a function that was guessed, or reads what forward does not of an object "
        "that was: only those that the op is meant for fit together",
        lambda g: g.explained == "called",
    ),
    Reason(
        "warning",
        "a Function inside returns None for it, and gradlint alone asked for its gradient",
        lambda g: g.explained == "asked",
    ),
    Reason(
        "warning",
        "a function among the arguments was guessed, and the op may be meant for others",
        lambda g: g.explained == "stand-in",
    ),
    Reason(
        "info",
        "forward is finite there only because it clamps: the op is hardly meant for such values",
        lambda g: g.explained == "clamped",
    ),
    Reason(
        "warning",
        "forward is finite at the guessed inputs only because it clamps: others may be meant",
        lambda g: g.explained == "clamped-guess",
    ),
    Reason(
        "warning",
        "backward draws random numbers and forward draws none: one draw is no derivative",
        lambda g: g.explained == "estimate",
    ),
    Reason(
        "warning",
        "backward depends on an argument that forward does not use: this may be meant",
        lambda g: g.explained == "unused",
    ),
    Reason(
        "warning",
        "it lies in the tangent space of a group, as a gradient may that is meant so",
        lambda g: g.explained == "tangent",
    ),
    Reason(
        "warning",
        "the documentation speaks of a natural or Riemannian gradient, which is no derivative",
        lambda g: g.explained == "geometry",
    ),
    Reason(
        "warning",
        "the documentation says that backward hands back relevance, which is no derivative",
        lambda g: g.explained == "attribution",
    ),
    Reason(
        "warning",
        "the documentation says that another gradient is put in place of the derivative",
        lambda g: g.explained == "substitute",
    ),
    Reason(
        "warning",
        "it is right for functions of what the basis spans, as it may be meant",
        lambda g: g.explained == "subspace",
    ),
    Reason(
        "info",
        "it raises, at inputs of another kind than those given",
        lambda g: not g.silent and g.where not in SAME_KIND,
    ),
    Reason(
        "info",
        "it raises where gradlint moved an argument, and nothing shows that it takes such a value",
        lambda g: g.chosen == "by accident" and not g.silent,
    ),
    Reason(
        "info",
        "no element differs by more than its own error bar",
        is_undecided,
    ),
    Reason(
        "info",
        f"the error is below {MATERIAL:.0e}, and no cause is confirmed",
        lambda g: not is_material(g),
    ),
    Reason(
        "warning",
        "it raises where gradlint moved an option away from what was given",
        lambda g: bool(g.chosen) and not g.guessed and not g.silent,
    ),
    Reason(
        "warning",
        "it raises at inputs that were guessed: those that the op is meant for may avoid it",
        lambda g: g.guessed and not g.silent,
    ),
    Reason(
        "warning",
        "seen only at inputs of another kind than those given",
        lambda g: g.where not in AS_GIVEN,
    ),
)


def decided(ceiling: Severity, grounds: Grounds) -> tuple[Severity, str]:
    """The severity of a finding, and the reason where it is below ``ceiling`` (else "").

    Args:
        ceiling: the highest that the rule allows.
        grounds: the evidence.
    """
    severity, words = ceiling, ""
    for reason in POLICY:
        if reason.applies(grounds) and _milder(reason.most, severity):
            severity, words = reason.most, reason.words
    return severity, words


def as_loud_as_evidence(outcome: Outcome, settings: Settings | None = None) -> Outcome:
    """``outcome`` with the severity of every finding decided; a failure that consists of
    information alone is a pass, whose resolving power is the error that remains unexplained.

    Args:
        outcome: of a rule.
        settings: may say how loud the findings of a rule are; default nothing.
    """
    said = settings or Settings()
    findings = [as_set(_weighed(finding), said) for finding in outcome.findings]
    verdict, resolution = outcome.verdict, outcome.resolution
    if verdict == "pass" and any(item.severity != "info" for item in findings):
        verdict = "fail"
    if verdict == "fail" and findings and all(item.severity == "info" for item in findings):
        verdict = "pass"
        limiting = [item.grounds for item in findings if item.grounds.explained in LIMITING]
        errors = [grounds.converged or grounds.relative_error or 0.0 for grounds in limiting]
        resolution = max([*errors, resolution or 0.0]) or None
    return replace(outcome, findings=findings, verdict=verdict, resolution=resolution)


def as_set(finding: Finding, settings: Settings) -> Finding:
    """``finding`` as loud as the settings want it: what they say of its rule takes the place of the
    rule's own severity. What is milder because of the evidence is not made louder."""
    levels = dict(settings.severities)
    under = longest_match(levels, finding.code)
    rule = by_code(finding.code)
    level = levels[under] if under is not None else "off"
    if rule is None or level == "off" or level == finding.severity:
        return finding
    if finding.severity != rule.severity and not _milder(level, finding.severity):
        return finding
    evidence = {**finding.evidence, f"{level} because": "the settings say so"}
    return replace(finding, severity=level, evidence=evidence)


def _weighed(finding: Finding) -> Finding:
    severity, words = decided(finding.severity, finding.grounds)
    if severity == finding.severity:
        return finding
    evidence = {**finding.evidence, f"{severity} because": words}
    return replace(finding, severity=severity, evidence=evidence)


def _milder(one: Severity, other: Severity) -> bool:
    return SEVERITIES.index(one) > SEVERITIES.index(other)
