"""What the three second-order rules share: one attempt to differentiate twice."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

import torch

from gradlint.base.text import error_text
from gradlint.experiments.call_budget import SECOND_ORDER_RESERVE, decide_within
from gradlint.experiments.differentiable_maps import SecondOrder, second_order
from gradlint.experiments.gradient_place import Place, gradient_place
from gradlint.experiments.preconditions import why_not_differentiated_twice
from gradlint.experiments.subject import Subject
from gradlint.model.report import Location
from gradlint.numerics.decide import Decision, decide
from gradlint.numerics.differences import LADDER, difference, significand_bits
from gradlint.numerics.directions import direction
from gradlint.numerics.map import along, working_bits
from gradlint.numerics.products import norm, real_dot, widened
from gradlint.numerics.verdict import AGREES, TOLERATED
from gradlint.targets.nodes import method_node
from gradlint.trace.graph import of_the_user
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem
from gradlint.trace.random import common_random_numbers

#: Only pairs among this many first inputs are checked for symmetry.
MOST_INPUTS = 4

#: Seed of the confirming measurement, relative to that of the first.
CONFIRMING_SEED = 1

#: Names whose use in backward leaves results without a graph.
GRAPH_CUTS = frozenset({"no_grad", "inference_mode", "detach", "data", "numpy", "item", "tolist"})

#: Texts by which an op, or PyTorch in its name, refuses to be differentiated twice.
REFUSALS = (
    "once_differentiable",
    "derivative for",
    "double backward",
    "double-backward",
    "second derivative",
    "does not support automatic differentiation for outputs with",
    "is not currently supported with create_graph",
    "create_graph=true",
    "not differentiable twice",
    "twice",
    "has no autograd formula",
    "autograd was not registered",
    "donated buffers",  # torch.compile, whose backward is compiled for one derivative
    "compatible with .grad()",  # and so not with create_graph either
)


@dataclass
class SecondOrderAttempt:
    """One attempt to differentiate twice.

    Args:
        reason: why there is nothing to judge, if so.
        map: the second-order map, or None.
        error: what raised, if anything.
        refused: whether ``error`` says openly that second derivatives are not supported.
        decision: verdicts on the map's values.
    """

    reason: str = ""
    map: SecondOrder | None = None
    error: OpRaised | None = None
    refused: bool = False
    decision: Decision | None = None


def differentiate_twice(subject: Subject) -> SecondOrderAttempt:
    """Build and judge the second-order map of ``subject``, once for all three rules."""
    reason = why_not_differentiated_twice(subject)
    if reason:
        return SecondOrderAttempt(reason)
    try:
        found = second_order(subject.problem, seed=subject.seed)
    except OpRaised as raised:
        text = error_text(raised.error).lower()
        once = subject.op.intent.once_differentiable
        return SecondOrderAttempt(
            "differentiating twice raises",
            error=raised,
            refused=once
            or isinstance(raised.error, NotImplementedError)
            or any(phrase in text for phrase in REFUSALS),
        )
    if found is None:
        return SecondOrderAttempt("no input has a gradient")
    try:
        decision = decide_within(
            subject.plan,
            subject.problem,
            found.map,
            SECOND_ORDER_RESERVE,
            lambda map: decide(map, seed=subject.seed, kinds=subject.plan.second),
        )
    except OpRaised as raised:
        return SecondOrderAttempt("differentiating twice raises", error=raised)
    return SecondOrderAttempt(map=found, decision=decision)


def is_lost(attempt: SecondOrderAttempt, place: int) -> bool:
    """Whether the claimed second derivative of value ``place`` is zero everywhere."""
    assert attempt.map is not None
    assert attempt.decision is not None
    return all(
        bool((gradients[place] == 0).all()) for gradients in attempt.decision.judgement.gradients
    )


@dataclass
class Asymmetry:
    """⟨w₁, H·w₂⟩ and ⟨w₂, H·w₁⟩ for two inputs (or one), and their relative difference."""

    first: int
    second: int
    one: float
    other: float
    relative: float


def asymmetry(subject: Subject, attempt: SecondOrderAttempt) -> Asymmetry | None:
    """The pair of inputs whose second derivatives are least symmetric, confirmed by a second
    measurement; None where all are symmetric to within rounding, or can't be computed.

    Costs one forward, one backward and two double backwards an input; twice that where an asymmetry
    is found. Only in float64: in narrower dtypes, the rounding of terms that cancel is as large as
    many second derivatives. The second measurement avoids casts to 16 bits inside the op.
    """
    wide = (torch.float64, torch.complex128)
    if not all(item.value.dtype in wide for item in subject.problem.inputs):
        return None
    try:
        if _worst_pair(subject, subject.problem, attempt, subject.seed) is None:
            return None
        exact = subject.problem.exact()
        problem = subject.problem if exact is None else exact[0]
        return _worst_pair(subject, problem, attempt, subject.seed + CONFIRMING_SEED)
    except OpRaised:
        return None


def _worst_pair(
    subject: Subject, problem: Problem, attempt: SecondOrderAttempt, seed: int
) -> Asymmetry | None:
    assert attempt.map is not None
    generator = torch.Generator().manual_seed(seed)
    leaves, outputs = problem.linearize()
    chosen = [item for item in outputs if item.differentiable]
    vs = [subject.run.cotangents[item.name] for item in chosen]
    with common_random_numbers(problem.seed):
        grads = problem.backward(chosen, leaves, vs, create_graph=True)
    attached = [k for k in attempt.map.targets if grads[k] is not None and _has_graph(grads[k])]
    attached = attached[:MOST_INPUTS]
    ws: dict[int, list[torch.Tensor]] = {}
    products: dict[int, list[list[torch.Tensor | None]]] = {}
    for k in attached:
        x, g = problem.inputs[k].value, grads[k]
        assert g is not None
        kinds = ("random", "signs")
        moves = [attempt.map.map.projected(k, direction(kind, x, g, generator)) for kind in kinds]
        ws[k] = [widened(move.to(x.dtype)) for move in moves]
        products[k] = [
            problem.backward([g], leaves, [w.to(g.dtype)], retain_graph=True) for w in ws[k]
        ]
    # With moves as large as the inputs, outputs, gradients and second derivatives are in the same
    # unit: a second derivative below the rounding of the outputs is noise.
    floor = sum(
        norm(widened(v).abs() * widened(item.value).abs())
        for v, item in zip(vs, chosen, strict=True)
    )
    found = [
        pair
        for place, i in enumerate(attached)
        for k in attached[place:]
        if (pair := _asymmetry_of(i, k, ws, products, grads, floor)) is not None
    ]
    return max(found, key=lambda pair: pair.relative, default=None)


def _asymmetry_of(
    i: int,
    k: int,
    ws: dict[int, list[torch.Tensor]],
    products: dict[int, list[list[torch.Tensor | None]]],
    grads: list[torch.Tensor | None],
    floor: float,
) -> Asymmetry | None:
    first, second = products[i][0][k], products[k][1][i]
    w_i, w_k = ws[i][0], ws[k][1]
    g_i, g_k = grads[i], grads[k]
    if first is None or second is None or g_i is None or g_k is None:
        return None
    one, other = real_dot(first, w_k), real_dot(second, w_i)
    scale = floor + sum(
        norm(widened(a).abs() * b.abs())
        for a, b in ((first, w_k), (second, w_i), (g_i, w_i), (g_k, w_k))
    )
    if not abs(one - other) > TOLERATED[significand_bits(torch.float64)] * scale:
        return None
    return Asymmetry(i, k, one, other, abs(one - other) / scale)


def _has_graph(gradient: torch.Tensor | None) -> bool:
    return gradient is not None and gradient.requires_grad


def target_at_fault(attempt: SecondOrderAttempt, place: int) -> int:
    """The input for which backward returns the gradient whose derivative is wrong.

    Backward returns one gradient for each input, and a derivative with respect to one input is
    taken of all of them together. Along a direction u that showed the fault, each gradient g is
    looked at alone: ⟨v, g(x + h·u) − g(x − h·u)⟩ / 2h against the slope that double backward claims
    for it. The one that is farthest off is at fault.

    Args:
        attempt: with a value that differs.
        place: of that value in the judgement.

    Returns:
        A position among the differentiable inputs; the first that has a gradient where none can be
        measured alone.
    """
    assert attempt.map is not None
    assert attempt.decision is not None
    targets = attempt.map.targets
    source, position = attempt.decision.behind(place)
    item = source.judgement.inputs[position]
    k = max(range(len(item.pairs)), key=lambda k: item.pairs[k].clarity, default=None)
    if len(targets) == 1 or k is None:
        return targets[0]
    function, probe = source.function, source.judgement.probe(k)
    x, u = function.values[item.index], probe.moves[item.index]
    h = 2.0 ** -LADDER[working_bits(function, x)][0]
    errors = []
    for v in probe.cotangents:
        alone = [w if w is v else torch.zeros_like(w) for w in probe.cotangents]
        try:
            claimed = function.gradients_at(function.values, alone)[item.index]
            step = difference(along(function, item.index), x, u, alone, claimed, h)
        except OpRaised:
            step = None
        errors.append(abs(step.residual) if step is not None else 0.0)
    return targets[errors.index(max(errors))]


def graph_cuts(function: type | None) -> list[Location]:
    """Places in the backward of ``function`` that use one of :data:`GRAPH_CUTS`; empty where there
    are none, or where the source can't be read."""
    if function is None:
        return []
    try:
        found = method_node(function, "backward") or method_node(function, "vjp")
    except Exception:  # sources can be anything
        return []
    if found is None:
        return []
    source, method, _ = found
    return [
        source.span(node)
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and node.attr in GRAPH_CUTS
    ]


def second_order_place(subject: Subject, position: int, towards: str = "") -> Place | None:
    """Where backward returns the gradient whose derivative is at fault, with the places that cut
    the graph as related ones; None where no Python backward ran.

    Args:
        position: of the input, among the differentiable ones, whose gradient is meant.
        towards: name of the input with respect to which its derivative is taken; said beside the
            expression where it is another one.
    """
    ran = {node.function for node in subject.run.nodes if of_the_user(node.function)}
    function = subject.op.function or (next(iter(ran)) if len(ran) == 1 else None)
    if function is None:
        return None
    item = subject.problem.inputs[position]
    location, excerpt, related = gradient_place(subject, item)
    if excerpt is not None and excerpt.label and towards not in ("", item.name):
        label = f"{excerpt.label}: its derivative with respect to `{towards}`"
        excerpt = replace(excerpt, label=label)
    return location, excerpt, [*related, *graph_cuts(function)]


#: What to do where second derivatives are not meant to be used.
FIRST_ORDER_ONLY = (
    ". If second derivatives are not intended, leave them out: `order = 1` in the class, in its "
    "spec or in [tool.gradlint], or --order 1"
)


def first_order_words(subject: Subject) -> str:
    """ "gradient right (to 1e-09); " where first order agrees, for a message on second order."""
    decision = subject.first_order if subject.first_order_is_known else None
    if decision is None or not decision.verdicts:
        return ""
    if any(verdict != AGREES for verdict in decision.verdicts):
        return ""
    return f"gradient right (to {decision.resolution:.0e}); "
