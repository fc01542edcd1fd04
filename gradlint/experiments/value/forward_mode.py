"""Forward mode: what an op's jvp returns, and what the function really does along a line."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from gradlint.base.text import error_line, error_text
from gradlint.diagnosis.evidence import unravel
from gradlint.experiments.mismatch import plain_number
from gradlint.experiments.raised_errors import (
    defining_file,
    raised_evidence,
    raised_place,
    user_frames,
)
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Rule
from gradlint.numerics.decide import Decision, decide
from gradlint.numerics.map import Map
from gradlint.numerics.products import dense, norm, real_dot, widened
from gradlint.targets import source
from gradlint.targets.nodes import method_node
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: How PyTorch rejects what jvp returned: pattern, cause, meaning, next step.
_REJECTED = (
    (
        r"jvp returned an invalid number of forward gradients \(expected (\d+) but got (\d+)\)",
        "wrong-number-of-tangents",
        "jvp must return one tangent for each output of forward",
        "return as many tangents as forward returns outputs, None for those that have none",
    ),
    (
        r"expected Variable or None",
        "tangent-not-a-tensor",
        "jvp returned something that is not a tensor",
        "return tensors, or None for outputs without a derivative",
    ),
    (
        r"forward gradient that has a different size",
        "wrong-tangent-shape",
        "a tangent must have the shape of its output",
        "reduce or expand the tangent as forward does with its values",
    ),
    (
        r"Expected both tensor and its forward grad",
        "none-tangent",
        "jvp returned None for an output that depends on the input, or a tangent of another dtype",
        "return a tangent of the output's dtype; zeros where it does not depend on the inputs",
    ),
    (
        r"the jvp is not returning a view|jvp is not (returning|a view)",
        "tangent-not-in-place",
        "forward returns an input or a view of it, so jvp must return the tangent or a view of it",
        "do to the tangent in jvp what forward does to the input: the same view, the same in-place "
        "operation",
    ),
)

#: How forward mode is refused: no jvp somewhere on the way.
_REFUSED = re.compile(
    r"must implement the jvp|does not support it because it has not been implemented"
    r"|forward AD|forward mode AD|vmap|functorch"
)

#: Relative misfit below which a hypothesis explains a tangent: the measured one has the error of a
#: single central difference (heuristic).
FITS = 1e-3

#: A factor explains a tangent where it leaves at most this share of the error (heuristic).
EXPLAINS = 0.1

#: Elements shown of those that differ most.
SHOWN = 3

#: Kinds of direction on a line, where only the sign is free: one for each cotangent.
_KINDS = ("signs", "signs", "signs")

#: Steps of the differences that show where a tangent is wrong, by dtype of the output (heuristic:
#: between truncation and rounding for moves of the size of the inputs).
STEPS = {torch.float64: 2.0**-14, torch.float32: 2.0**-7}


def functions_with_jvp(subject: Subject) -> list[type]:
    """Python Functions of the graph that define ``jvp``, the op's own first; without those whose
    jvp is a stub, which has no statement: they offer no forward mode, and say so when asked."""
    inherited = torch.autograd.Function.jvp
    found = [subject.op.function, *(node.function for node in subject.run.nodes)]
    unique = dict.fromkeys(item for item in found if item is not None)
    return [
        item
        for item in unique
        if getattr(item, "jvp", inherited) is not inherited and not _is_stub(item)
    ]


def _is_stub(function: type) -> bool:
    """Whether the body of ``jvp`` is a docstring, ``...`` or ``pass``."""
    found = method_node(function, "jvp")
    if found is None or isinstance(found[1], ast.Lambda):
        return False
    empty = (ast.Pass, ast.Constant)
    parts = (item.value if isinstance(item, ast.Expr) else item for item in found[1].body)
    return all(isinstance(part, empty) for part in parts)


def push_forward(
    problem: Problem,
    values: Sequence[torch.Tensor],
    tangents: Sequence[torch.Tensor | None],
    names: Sequence[str],
) -> list[torch.Tensor | None]:
    """Tangents of the outputs ``names`` at ``values``; None where an output has none.

    Raises:
        OpRaised: when forward, jvp or PyTorch between them raises.
    """
    with forward_ad.dual_level():
        leaves = []
        for value, tangent in zip(values, tangents, strict=True):
            leaf = value.detach().clone()
            leaves.append(
                leaf
                if tangent is None
                else forward_ad.make_dual(leaf, tangent.to(value.dtype, copy=True))
            )
        found = {item.name: item.value for item in problem.connect(leaves)}
        result: list[torch.Tensor | None] = []
        for name in names:
            tangent = forward_ad.unpack_dual(found[name]).tangent if name in found else None
            result.append(None if tangent is None else dense(tangent.detach()).clone())
        return result


def judge_along_line(
    subject: Subject, position: int, u: torch.Tensor, names: Sequence[str], seed: int
) -> Decision | None:
    """Whether jvp along ``u`` in input ``position`` is the derivative of t ↦ f(x + t·u); None where
    forward, which ran before, now refuses x."""
    problem = subject.problem
    start = widened(problem.inputs[position].value)

    def at(t: torch.Tensor) -> list[torch.Tensor]:
        values = problem.values()
        values[position] = (start + t.reshape(()).to(start.device) * u).to(values[position].dtype)
        return values

    def evaluate(values: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        try:
            found = {item.name: item.value.detach() for item in problem.forward(at(values[0]))}
        except OpRaised:
            return None
        return [found[name] for name in names] if set(names) <= set(found) else None

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        tangents: list[torch.Tensor | None] = [None] * len(problem.inputs)
        tangents[position] = u
        pushed = push_forward(problem, at(values[0]), tangents, names)
        slope = sum(
            real_dot(v, tangent)
            for v, tangent in zip(cotangents, pushed, strict=True)
            if tangent is not None
        )
        return [torch.tensor([slope], dtype=torch.float64)]

    outputs = evaluate([torch.zeros(1, dtype=torch.float64)])
    if outputs is None:
        return None
    line = Map([torch.zeros(1, dtype=torch.float64)], outputs, evaluate, pull_at)
    return decide(line, seed=seed, kinds=_KINDS)


def central_differences(
    subject: Subject, position: int, u: torch.Tensor, names: Sequence[str]
) -> list[torch.Tensor] | None:
    """(f(x + h·u) − f(x − h·u)) / 2h of each output, element by element; float64."""
    problem = subject.problem
    value = problem.inputs[position].value
    h = STEPS[torch.float32 if value.dtype in (torch.float32, torch.complex64) else torch.float64]
    sides: list[dict[str, Any]] = []
    for sign in (1.0, -1.0):
        values = problem.values()
        values[position] = (widened(value) + sign * h * u).to(value.dtype)
        try:
            sides.append({item.name: widened(item.value) for item in problem.forward(values)})
        except OpRaised:
            return None
    if not all(name in side for side in sides for name in names):
        return None
    return [(sides[0][name] - sides[1][name]) / (2.0 * h) for name in names]


def raised_jvp_finding(
    subject: Subject,
    rule: Rule,
    functions: list[type],
    position: int,
    names: list[str],
    error: OpRaised,
) -> Finding | None:
    """A finding on what was raised while input ``position`` alone had a tangent; None where it is
    an open refusal."""
    name = subject.problem.inputs[position].name
    prefer = defining_file(subject)
    text = error_text(error.error)
    evidence = raised_evidence(error.error, prefer)
    for pattern, slug, meaning, fix in _REJECTED:
        if re.search(pattern, text):
            return subject.finding(
                rule,
                f"jvp for `{name}` is rejected: {slug.replace('-', ' ')}",
                cause=slug,
                cause_text=f"{slug}: {meaning}",
                input=name,
                place=source.method(functions[0], "jvp"),
                evidence=evidence,
                help=fix,
            )
    frames = [frame.name for frame in user_frames(error.error, prefer)]
    if isinstance(error.error, NotImplementedError) or "jvp" not in frames:
        return None
    if _REFUSED.search(text) and frames[-1] != "jvp":
        return None
    alone = _runs_with_all(subject, position, names)
    line = error_line(error.error)
    return subject.finding(
        rule,
        f"jvp raises {type(error.error).__name__} where "
        + (f"only `{name}` has a tangent" if alone else f"`{name}` has a tangent"),
        cause="none-tangent" if alone else None,
        cause_text=f"none-tangent: {line}" if alone else line,
        input=name,
        place=raised_place(error.error, prefer) or source.method(functions[0], "jvp"),
        evidence=evidence,
        help="an input without tangent gives None after ctx.set_materialize_grads(False): test "
        "each tangent for None, or leave that call out"
        if alone
        else "run the op under torch.autograd.forward_ad with the sample shown",
    )


def _runs_with_all(subject: Subject, position: int, names: list[str]) -> bool:
    """Whether jvp runs once every input has a tangent."""
    values = subject.problem.values()
    if len(values) < 2:
        return False
    try:
        push_forward(subject.problem, values, [torch.ones_like(value) for value in values], names)
    except OpRaised:
        return False
    return True


def tangent_cause(
    returned: Sequence[torch.Tensor | None], measured: Sequence[torch.Tensor]
) -> tuple[str | None, str]:
    """The cause as a slug and in words; (None, "") where none fits."""
    pairs = [
        (torch.zeros_like(true) if tangent is None else widened(tangent), true)
        for tangent, true in zip(returned, measured, strict=True)
    ]
    if all(tangent is None for tangent in returned):
        return "zero", "zero: no output has a tangent, although this input has one"
    own = torch.cat([tangent.reshape(-1) for tangent, _ in pairs])
    true = torch.cat([value.reshape(-1) for _, value in pairs])
    size = norm(true)
    if norm(own) == 0.0:
        return "zero", "zero: the tangent is zero, the derivative is not"
    if size == 0.0:
        return None, ""
    factor = real_dot(true, own) / size**2
    left = norm(own - factor * true)
    if left <= min(FITS * norm(own), EXPLAINS * norm(own - true)):
        if abs(factor + 1.0) <= FITS:
            return "sign", "sign: the tangent is the negative of the derivative"
        return "scaled", f"scaled: the tangent is {factor:.4g} times the derivative"
    return None, ""


def worst_tangent(
    returned: Sequence[torch.Tensor | None],
    measured: Sequence[torch.Tensor],
    names: Sequence[str],
) -> tuple[str, list[int], list[dict[str, Any]]]:
    """The output with the largest error, the index there, and rows for the worst elements."""
    best: tuple[float, str, list[int], list[dict[str, Any]]] = (-1.0, "", [], [])
    for tangent, true, name in zip(returned, measured, names, strict=True):
        own = torch.zeros_like(true) if tangent is None else widened(tangent)
        if own.shape != true.shape or not true.numel():
            continue
        error = torch.nan_to_num((own - true).abs(), nan=float("inf")).reshape(-1)
        order = torch.argsort(error, descending=True)[:SHOWN].tolist()
        if float(error[order[0]]) <= best[0]:
            continue
        shape = tuple(true.shape)
        rows = [
            {
                "index": list(unravel(k, shape)),
                "returned": plain_number(own.reshape(-1)[k]),
                "measured": plain_number(true.reshape(-1)[k]),
                "error": float(error[k]),
            }
            for k in order
        ]
        best = (float(error[order[0]]), name, list(unravel(order[0], shape)), rows)
    return best[1:]
