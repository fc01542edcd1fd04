"""Declared surrogates: backward is compared with the declaration, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradlint.diagnosis.causes import diagnose
from gradlint.diagnosis.evidence import Evidence
from gradlint.experiments.gradient_place import gradient_place, returned_expression
from gradlint.experiments.mismatch import describe_elements
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.explained import through_autograd
from gradlint.expressions.compile import compile_expression
from gradlint.expressions.evaluate import evaluate
from gradlint.model.report import Finding
from gradlint.model.rule import Rule
from gradlint.model.sample import positional_names
from gradlint.numerics.directions import cotangent
from gradlint.trace.op_io import OpRaised

#: On a gradient that is a usual surrogate.
_STRAIGHT = (
    "this is exactly the derivative of forward with rounding taken as the identity: if that is "
    "meant, declare it (`surrogate` in a spec or the class), and backward is compared with it"
)
#: Words in the cause of a gradient that must be a surrogate, since the derivative is zero.
PIECEWISE = "piecewise constant"
#: Functions whose straight-through gradient is, by general use, that of the identity.
_ROUNDING = frozenset(
    getattr(owner, name)
    for owner in (torch, torch.Tensor)
    for name in ("round", "floor", "ceil", "trunc", "fix")
)
#: Relative disagreement allowed between backward and its declaration, in units of the dtype's
#: epsilon: the two may order their operations differently (heuristic).
ROUNDINGS = 1e3


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
    tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
    return tensor.detach().to(dtype=like.dtype, device=like.device).broadcast_to(like.shape)


def soften_surrogates(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn about other inputs of an op that rounds: where forward is piecewise constant in
    one, gradients are surrogates, and that of a step size or a bound is then one too. Say which of
    them are the derivative of forward with rounding taken as the identity."""
    rounds = [item.input for item in findings if PIECEWISE in item.cause_text]
    if not rounds:
        return
    straight = straight_through(subject)
    for item in findings:
        if item.input not in rounds and item.severity == "error":
            item.severity = "warning"
            item.help = (
                f"forward is piecewise constant in `{rounds[0]}`: if the gradient of "
                f"`{item.input}` is part of the same surrogate, declare it as well; otherwise "
                f"{item.help}"
            )
        if straight.get(item.input or ""):
            item.help = _STRAIGHT


def straight_through(subject: Subject) -> dict[str, bool]:
    """Input → whether its gradient is what autograd makes of forward with rounding taken as the
    identity; empty where forward doesn't round, or consists of other operations than autograd's.
    """
    with _RoundingAsIdentity() as rounding:
        problem = through_autograd(subject)
        if problem is None or not rounding.seen:
            return {}
        probe = subject.first_order.judgement.probe(0)
        names = [item.name for item in subject.run.outputs if item.differentiable]
        try:
            found = problem.pull(dict(zip(names, probe.cotangents, strict=True)))
        except (OpRaised, ValueError):
            return {}
    equal = {}
    for item, own, other in zip(subject.problem.inputs, probe.gradients, found, strict=True):
        if other is not None and other.shape == own.shape and own.numel():
            bar = ROUNDINGS * torch.finfo(own.dtype).eps * float(own.abs().max())
            equal[item.name] = bool(((own - other.detach()).abs() <= bar).all())
    return equal


class _RoundingAsIdentity(TorchFunctionMode):
    """Gradients pass through functions that round, as if these returned what they are given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        value = func(*args, **(kwargs or {}))
        if func in _ROUNDING and isinstance(args[0], torch.Tensor) and args[0].requires_grad:
            self.seen = True
            return args[0] + (value - args[0]).detach()
        return value
