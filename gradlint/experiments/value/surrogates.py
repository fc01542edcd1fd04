"""Declared surrogates: backward is compared with the declaration, exactly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradlint.base.errors import GradlintError
from gradlint.base.text import error_line
from gradlint.diagnosis.causes import diagnose
from gradlint.diagnosis.evidence import Evidence
from gradlint.experiments.gradient_place import gradient_place, returned_expression
from gradlint.experiments.mismatch import describe_elements
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.altered_identities import is_as_said, says_scaled_by
from gradlint.experiments.value.clipped_slopes import clips_slope
from gradlint.experiments.value.inner_surrogates import (
    explain_steps_inside,
    soften_inner_surrogates,
)
from gradlint.experiments.value.rounding import COMPARING, ROUNDING, SIGNS
from gradlint.experiments.value.said_of_gradients import says_surrogate
from gradlint.experiments.value.staircases import follows_in_the_large
from gradlint.experiments.value.step_surrogates import is_bump_over_step
from gradlint.experiments.value.usual_surrogates import (
    BOUNDED,
    ROUNDINGS,
    passed_through,
    passes_as_identity,
    straight_through,
    usual_surrogates,
)
from gradlint.expressions.compile import compile_expression
from gradlint.expressions.evaluate import evaluate
from gradlint.inputs.documentation import prose
from gradlint.model.report import Finding
from gradlint.model.rule import Rule
from gradlint.model.sample import positional_names
from gradlint.numerics.directions import cotangent
from gradlint.ops.eager import eager
from gradlint.trace.op_io import OpRaised

#: On a gradient that is a usual surrogate.
_STRAIGHT = (
    "this is exactly the derivative of forward with rounding taken as the identity: if that is "
    "meant, declare it (`surrogate` in a spec or the class), and backward is compared with it"
)
_STAIRCASE = (
    "forward quantizes: if its gradient is meant to be that without quantizing, declare it "
    "(`surrogate` in a spec or the class, for `{name}`), and backward is compared with it"
)
#: Words in the cause of a gradient that must be a surrogate, since the derivative is zero.
PIECEWISE = "piecewise constant"


def judge_surrogates(subject: Subject, rule: Rule) -> tuple[list[Finding], set[str]]:
    """Findings for inputs whose gradient is not the declared one, and the names declared."""
    declared = subject.op.intent.surrogate
    if not declared:
        return [], set()
    findings = []
    for position, item in enumerate(subject.problem.inputs):
        if item.name in declared:
            finding = _compare(subject, rule, position, declared[item.name])
            if finding is not None:
                findings.append(finding)
    return findings, set(declared)


def _compare(subject: Subject, rule: Rule, position: int, text: str) -> Finding | None:
    problem, function = subject.problem, subject.first_order_map
    item = problem.inputs[position]
    generator = torch.Generator().manual_seed(subject.seed)
    evidence = []
    wrong = False
    for _ in range(2):
        vs = [cotangent(output, generator) for output in function.outputs]
        claimed = [
            torch.zeros_like(value) if grad is None else grad.detach()
            for value, grad in zip(function.values, function.pull(vs), strict=True)
        ]
        expected = _evaluate(subject, text, vs, item.value)
        own = claimed[position]
        bar = ROUNDINGS * torch.finfo(own.dtype).eps * float(expected.abs().max().clamp_min(1e-300))
        wrong |= bool(((own - expected).abs() > bar).any())
        flat = expected.reshape(-1)
        evidence.append(
            Evidence(
                position,
                [i.name for i in problem.inputs],
                claimed,
                torch.arange(flat.numel()),
                flat.cpu().to(torch.complex128 if flat.is_complex() else torch.float64),
                torch.full((flat.numel(),), bar, dtype=torch.float64),
                vs,
            )
        )
    if not wrong:
        return None
    cause = diagnose(evidence)
    if cause is not None and cause.slug == "zero":
        cause = replace(
            cause,
            text=f"zero: backward returns zeros for `{item.name}`, the declaration does not",
            help=f"return what is declared: {text}",
        )
    numbers: dict[str, object] = {"declared": text}
    index = describe_elements(evidence[0], numbers)
    span = gradient_place(subject, item)
    help_text = cause.help if cause else "return what is declared, or declare what is returned"
    return subject.finding(
        rule,
        f"gradient for `{item.name}` is not the declared surrogate",
        cause=cause.slug if cause else None,
        cause_text=cause.text if cause else "",
        input=item.name,
        index=index,
        place=span,
        evidence=numbers,
        help=help_text.replace("{expression}", returned_expression(span) or "…"),
    )


def _evaluate(
    subject: Subject, text: str, cotangents: list[torch.Tensor], like: torch.Tensor
) -> torch.Tensor:
    """The declared gradient at the sample, broadcast to the input's shape.

    Names: every argument of forward, ``grad_output`` (the first one), ``grad_outputs``,
    ``output`` and ``outputs``.
    """
    sample, problem = subject.sample, subject.problem
    names = positional_names(subject.op.signature, len(sample.args))
    env: dict[str, object] = dict(zip(names, sample.args, strict=True)) | dict(sample.kwargs)
    signature = subject.op.signature
    for parameter in signature.parameters.values() if signature else ():
        if parameter.name not in env and parameter.default is not parameter.empty:
            env[parameter.name] = parameter.default
    outputs = [output.detach() for output in subject.first_order_map.outputs]
    env |= {item.name: item.value for item in problem.inputs if item.name.isidentifier()}
    env |= {
        "grad_output": cotangents[0],
        "grad_outputs": tuple(cotangents),
        "output": outputs[0],
        "outputs": tuple(outputs),
    }
    with torch.no_grad():
        value = evaluate(compile_expression(text, set(env)), env)
    if not isinstance(value, (torch.Tensor, bool, int, float, complex)):
        raise GradlintError(
            f"the surrogate `{text}` gives {type(value).__name__}, not a tensor or a number",
            place=subject.op.target,
            hint="write the gradient that backward returns on purpose",
        )
    try:
        tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
        return tensor.detach().to(dtype=like.dtype, device=like.device).broadcast_to(like.shape)
    except (RuntimeError, ValueError, OverflowError) as error:
        raise GradlintError(
            f"the surrogate `{text}` does not fit the input's shape {list(like.shape)}: "
            f"{error_line(error)}",
            place=subject.op.target,
        ) from None


def soften_surrogates(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn about other inputs of an op that rounds: where forward is piecewise constant in
    one, gradients are surrogates, and that of a step size or a bound is then one too. Say which of
    them are the derivative of forward with rounding taken as the identity: where the documentation
    says that this is meant, it explains them."""
    rounds = [item.input or "" for item in findings if PIECEWISE in item.cause_text]
    if not rounds:
        _soften_identities(subject, findings)
        _explain_scaled(subject, findings)
        _soften_rectified(subject, findings)
        _soften_passed_on(subject, findings)
        if _takes_steps(subject):
            _explain_usual(subject, findings)
        soften_inner_surrogates(subject, findings)
        _soften_staircases(subject, findings)
        _explain_clipped(subject, findings)
        return
    explain_steps_inside(subject, findings)
    _explain_usual(subject, findings)
    straight = straight_through(subject)
    owner = subject.op.function or subject.op.defining
    words, said = prose(owner), says_surrogate(owner)
    for item in findings:
        if item.input not in rounds and item.severity == "error":
            item.severity = "warning"
            item.help = (
                f"forward is piecewise constant in `{rounds[0]}`: if the gradient of "
                f"`{item.input}` is part of the same surrogate, declare it as well; otherwise "
                f"{item.help}"
            )
        name = item.input or ""
        if straight.get(name):
            item.help = _STRAIGHT
            if said and passed_through(subject, rounds, [name]):
                item.grounds = replace(item.grounds, explained="surrogate")
        elif (
            said
            and name in rounds
            and not straight
            and not _rounds(subject)
            and _is_known(subject, name, words)
        ):
            item.grounds = replace(item.grounds, explained="surrogate")


def _explain_usual(subject: Subject, findings: Sequence[Finding]) -> None:
    """Let a usual surrogate explain the gradients of a Function that takes steps, if its name or
    documentation tells of one, and only warn about them otherwise; all that are wrong, or none:
    what is wrong beside one may be wrong by accident."""
    wrong = [item for item in findings if item.grounds.explained in (None, "unused")]
    if not wrong or (subject.op.function is None and subject.op.kind != "library"):
        return
    if {item.input for item in wrong} <= usual_surrogates(
        subject, {item.input or "" for item in wrong}
    ):
        said = says_surrogate(subject.op.function or subject.op.defining)
        for item in wrong:
            if said:
                item.grounds = replace(item.grounds, explained="surrogate")
            elif item.severity == "error":
                item.severity = "warning"


def _soften_passed_on(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn about gradients that are passed on unchanged where forward rounds, and scales by
    what it finds in the input: it is not piecewise constant then. Where the documentation says that
    they are passed on, as through a clamp, this explains them; where it also tells of bounds, it
    may mean those of the gradient."""
    owner = subject.op.function or subject.op.defining
    said = says_surrogate(owner)
    wrong = [item for item in findings if item.severity == "error"]
    for item in wrong if said else ():
        if item.cause != "straight-through" and _is_passed_on(subject, item.input):
            item.severity = "warning"  # through a product, say, which the text may mean or not
    passed = [item for item in wrong if item.cause == "straight-through"]
    if not passed:
        return
    rounds = _rounds(subject)
    meant = said and not BOUNDED.search(prose(owner))
    for item in passed:
        if meant and (rounds or _stands_still(item)):
            item.grounds = replace(item.grounds, explained="surrogate")
        elif said or rounds:
            item.severity = "warning"


#: Measured change, relative to what was returned, below which forward stands still: what rounding
#: leaves of differences is far smaller, and a slope that counts is larger (heuristic).
_STILL = 1e-4


def _stands_still(finding: Finding) -> bool:
    """Whether forward does not change with the elements that are shown, as beyond a clamp: where it
    does, a gradient that is passed on stands for nothing."""
    rows = finding.evidence.get("elements") or []
    return bool(rows) and all(abs(row["measured"]) <= _STILL * abs(row["returned"]) for row in rows)


def _is_passed_on(subject: Subject, name: str | None) -> bool:
    """Whether the gradient of an input is that of the only output, unchanged."""
    probe = subject.first_order.judgement.probe(0)
    names = [item.name for item in subject.problem.inputs]
    if name not in names or len(probe.cotangents) != 1:
        return False
    return _equal(probe.gradients[names.index(name)], probe.cotangents[0])


def _soften_identities(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn where forward returns what it is given: such an op is written for the sake of a
    gradient of its own, which reverses, scales or clips. Where its name or its documentation says
    which, and it is that, this explains it."""
    outputs = [item.value for item in subject.run.outputs if item.differentiable]
    values = {item.name: item.value for item in subject.problem.inputs}
    positions = {item.name: k for k, item in enumerate(subject.problem.inputs)}
    if not all(any(_equal(output, value) for value in values.values()) for output in outputs):
        return
    for item in findings:
        name = item.input or ""
        if item.severity == "error" and any(_equal(output, values[name]) for output in outputs):
            item.severity = "warning"
            if is_as_said(subject, positions[name]):
                item.grounds = replace(item.grounds, explained="surrogate")
                continue
            if item.grounds.explained == "unused":  # that help says the same
                continue
            item.help = (
                f"forward returns `{name}` as it is: if the op is there for a gradient of its own,"
                f" declare it (`surrogate` on the class or in a spec); otherwise {item.help}"
            )


#: The argument, or its reciprocal, that the returned gradient is a multiple of.
_FACTOR = re.compile(r"^scaled: the returned gradient times -?(?:1/)?(\w+) agrees")


def _explain_scaled(subject: Subject, findings: Sequence[Finding]) -> None:
    """Let the documentation explain gradients that are right but for a factor, if it says that they
    are scaled by that argument."""
    for item in findings:
        factor = _FACTOR.search(item.cause_text)
        if item.severity == "error" and factor and says_scaled_by(subject, factor[1]):
            item.grounds = replace(item.grounds, explained="surrogate")


def _soften_rectified(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn where backward goes by the sign of the gradients that it receives: it hands on
    their positive part, as guided backpropagation does (Springenberg et al. 2014), or lets what
    moves an element back within its bounds pass where it stops all else, as learned scales that
    must stay positive do (Ballé et al. 2018). Nobody writes that by accident."""
    wrong = [i for i in findings if i.cause == "not-linear" and i.severity == "error"]
    names = [item.name for item in subject.run.outputs if item.differentiable]
    positions = {item.name: k for k, item in enumerate(subject.problem.inputs)}
    if not wrong:
        return
    generator = torch.Generator().manual_seed(subject.seed)
    vs = [cotangent(output, generator) for output in subject.first_order_map.outputs]

    def pulled(parts: list[torch.Tensor]) -> list[torch.Tensor | None]:
        found = subject.problem.pull(dict(zip(names, parts, strict=True)))
        # Backward may write its next result to the same memory.
        return [None if gradient is None else gradient.clone() for gradient in found]

    try:
        own = pulled(vs)
        positive = pulled([v.relu() for v in vs])
        negative = pulled([(-v).relu() for v in vs])
        opposite = pulled([-v for v in vs])
        small = pulled([v / _SMALL for v in vs])
    except (OpRaised, ValueError, RuntimeError):  # complex numbers have no positive part
        return
    for item in wrong:
        k = positions[item.input or ""]
        if _is_rectified(own[k], positive[k], negative[k]):
            meant = (
                "backward passes on what is positive in grad_output only, as guided"
                " backpropagation does"
            )
        elif len(vs) == 1 and _returns_to_bounds(vs[0], own[k], opposite[k], small[k]):
            meant = (
                "backward passes on some elements of grad_output of one sign only, as where an"
                " input may move back within its bounds"
            )
        else:
            continue
        item.severity = "warning"
        item.help = f"{meant}: if that is meant, say so in the documentation; otherwise {item.help}"


#: Divisor of a cotangent by which the size of its elements is told from their sign; a power of two,
#: so that nothing is rounded.
_SMALL = 1024.0


def _is_rectified(
    own: torch.Tensor | None, positive: torch.Tensor | None, negative: torch.Tensor | None
) -> bool:
    """Whether a gradient is that of the positive part of the cotangent."""
    return (
        own is not None
        and positive is not None
        and (negative is None or not _equal(own, negative))  # else grad_output is not used
        and bool(own.any())
        and _equal(own, positive)
    )


def _returns_to_bounds(
    v: torch.Tensor,
    own: torch.Tensor | None,
    opposite: torch.Tensor | None,
    small: torch.Tensor | None,
) -> bool:
    """Whether a gradient is its cotangent ``v`` with some elements left out, the size of which does
    not matter: some are passed on with both signs, and some with one sign alone."""
    if own is None or opposite is None or small is None or own.shape != v.shape:
        return False
    for gradient, sign in ((own, 1), (opposite, -1)):
        if not bool(((gradient == sign * v) | (gradient == 0)).all()):
            return False
    passed, passed_back = own != 0, opposite != 0
    return (
        _equal(own, small * _SMALL)
        and bool((passed & passed_back).any())
        and bool((passed ^ passed_back).any())
    )


def _soften_staircases(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn about gradients that forward follows over steps larger than those of a quantizer;
    where the documentation tells of a surrogate, it explains them."""
    owner = subject.op.function or subject.op.defining
    positions = {item.name: k for k, item in enumerate(subject.problem.inputs)}
    for item in findings:
        if item.severity != "error" or item.grounds.explained or item.input not in positions:
            continue
        if not follows_in_the_large(subject, positions[item.input]):
            continue
        item.cause = "straight-through"
        item.cause_text = (
            f"straight-through: forward is a staircase in `{item.input}`, and over many of its "
            "stairs it changes as backward says"
        )
        item.help = _STAIRCASE.format(name=item.input)
        if says_surrogate(owner):
            item.grounds = replace(item.grounds, explained="surrogate")
        else:
            item.severity = "warning"


def _explain_clipped(subject: Subject, findings: Sequence[Finding]) -> None:
    """Explain gradients that are the slope of forward within bounds that backward clamps it to."""
    positions = {item.name: k for k, item in enumerate(subject.problem.inputs)}
    for item in findings:
        explained = item.grounds.explained not in (None, "substitute")
        if explained or item.input not in positions or subject.op.function is None:
            continue
        if clips_slope(subject, positions[item.input]):
            item.grounds = replace(item.grounds, explained="clipped")
            item.cause, item.cause_text = (
                None,
                "backward returns the slope of forward, clamped to bounds",
            )
            item.help = "nothing, if this keeps a gradient from overflowing or vanishing"


#: Bound before the code of an op can replace it: on this depends how loud a finding is.
_bound_equal = torch.equal


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    # A subclass of the op's may say of itself that it is equal to everything.
    return _bound_equal(one.as_subclass(torch.Tensor), other.as_subclass(torch.Tensor))


def _rounds(subject: Subject) -> bool:
    """Whether forward calls a function that rounds; what it compiles is run uncompiled."""
    return _calls_any(subject, ROUNDING)


def _takes_steps(subject: Subject) -> bool:
    """Whether forward calls a function that rounds, takes signs or compares."""
    return _calls_any(subject, ROUNDING | SIGNS | COMPARING)


def _calls_any(subject: Subject, functions: frozenset[Any]) -> bool:
    watched = _Watched(functions)
    try:
        with eager(), watched:
            subject.problem.forward()
    except OpRaised:
        return False
    return watched.seen


class _Watched(TorchFunctionMode):
    """Notes whether one of some functions is called."""

    def __init__(self, functions: frozenset[Any]) -> None:
        super().__init__()
        self.seen = False
        self._functions = functions

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen = self.seen or func in self._functions
        return func(*args, **(kwargs or {}))


def _is_known(subject: Subject, name: str, words: str) -> bool:
    """Whether the gradient of an input is that of a usual surrogate for a sign or a spike."""
    position = next(k for k, item in enumerate(subject.problem.inputs) if item.name == name)
    return passes_as_identity(subject, name, words) or is_bump_over_step(subject, position)
