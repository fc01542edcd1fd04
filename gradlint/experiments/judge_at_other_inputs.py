"""The op at arguments other than the sample's: is its gradient right there too?

One pair (v, u) that moves all inputs at once judges most calls: one forward with its backward, and
two evaluations. Only a disagreement is judged input by input, confirmed and distinguished from
kinks as at the sample itself. Where forward refuses the arguments there is nothing to judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from gradlint.experiments.call_budget import SINGLE_DIRECTION, decide_within
from gradlint.experiments.differentiable_maps import first_order, float64_twin
from gradlint.experiments.raised_errors import is_memory_used_up
from gradlint.experiments.subject import Subject
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.numerics.concatenated_inputs import by_dtype, merged
from gradlint.numerics.decide import Decision, decide
from gradlint.numerics.directions import KINDS, cotangent
from gradlint.numerics.map import Map, Projection
from gradlint.numerics.products import all_finite, dense
from gradlint.numerics.verdict import AGREES, DIFFERS, ROUNDED, UNSURE
from gradlint.ops.patience import NotTried
from gradlint.trace.op_io import OpRaised, Output
from gradlint.trace.problem import Problem

#: Verdicts. REFUSED: forward raised, or returned nothing finite; RAISED: backward raised;
#: NOT_FINITE: a gradient is not finite although the outputs are; EMPTY: there is nothing to move.
RIGHT, WRONG, REFUSED, RAISED, NOT_FINITE, EMPTY, UNDECIDED = (
    "right",
    "wrong",
    "refused",
    "raised",
    "not finite",
    "empty",
    "undecided",
)

#: Calls where the gradient is right.
CALLS = 4

#: Relative error of a gradient that a measurement at extreme magnitudes must be able to see for its
#: disagreement to count (heuristic: where it resolves less than a digit, forward has lost nearly
#: all of its own, and changes from one rounding to the next; what a faulty branch or bound does
#: there is seen to six digits or more).
COARSEST = 0.1


@dataclass
class JudgementElsewhere:
    """How the op was judged at other arguments.

    Args:
        verdict: one of the words above.
        subject: the op there.
        error: what it raised.
        decision: with WRONG, what was decided input by input.
        positions: inputs whose gradient is wrong, or not finite.
        outputs: what forward returned.
        gradients: what backward returned for one random cotangent.
    """

    verdict: str
    subject: Subject
    error: OpRaised | None = None
    decision: Decision | None = None
    positions: list[int] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    gradients: list[torch.Tensor | None] = field(default_factory=list)


def judge_at_other_inputs(
    subject: Subject,
    sample: Sample,
    op: Op | None = None,
    values: Mapping[int, torch.Tensor] | None = None,
) -> JudgementElsewhere:
    """Judge the op of ``subject`` at ``sample``.

    Args:
        subject: the op at its own sample; the calls count there.
        sample: other arguments. Optional tensors may be left out, or given beside the others.
        op: another form of the op; default the same.
        values: position of a differentiable input → its value in place of the sample's.
    """
    there = Subject(op or subject.op, sample, subject.settings)
    there.planned = subject.planned
    there.problem.patience = subject.problem.patience
    there.problem.preserve_state = subject.problem.preserve_state
    there.problem.needs_graph_as(subject.problem)
    there.problem.put(values or {})
    try:
        return _judge_there(subject, there)
    finally:
        subject.problem.forward_calls += there.problem.forward_calls
        subject.problem.backward_calls += there.problem.backward_calls


def _judge_there(subject: Subject, there: Subject) -> JudgementElsewhere:
    problem = there.problem
    try:
        leaves, outputs = problem.linearize()
    except OpRaised as raised:
        return JudgementElsewhere(REFUSED, there, raised)
    found = JudgementElsewhere(EMPTY, there, outputs=outputs)
    chosen = [item for item in outputs if item.differentiable]
    if not chosen or any(item.value.is_nested for item in outputs):
        return found
    if not _as_finite(subject, chosen):
        found.verdict = REFUSED
        return found
    map = _map(found, leaves, chosen, _projections(subject, problem))
    left_out = _names(
        subject, set(range(len(subject.problem.inputs))) - set(judged_inputs(subject))
    )
    moved = [
        position
        for position, item in enumerate(problem.inputs)
        if item.name not in left_out and item.value.numel()
    ]
    try:
        if not moved or not any(y.numel() for y in map.outputs):
            map.pull(_cotangents(map.outputs, there.seed))
            return found
        first_look = _decide_there(
            subject, there, merged(map, by_dtype(map, moved)), SINGLE_DIRECTION
        )
    except OpRaised as raised:
        ended = isinstance(raised.error, NotTried) or is_memory_used_up(there, str(raised.error))
        found.verdict, found.error = REFUSED if ended else RAISED, raised
        return found
    broken = [k for k in moved if not _finite(found.gradients[k])]
    if broken:
        found.verdict, found.positions = NOT_FINITE, broken
        return found
    if all(verdict in (AGREES, ROUNDED) for verdict in first_look.verdicts):
        found.verdict = RIGHT
        return found
    if DIFFERS not in first_look.verdicts:
        apart = replace(first_order(problem), project=map.project)
        first_look = _decide_there(subject, there, apart, SINGLE_DIRECTION, moved)
        if DIFFERS not in first_look.verdicts:
            found.verdict = UNDECIDED if UNSURE in first_look.verdicts else RIGHT
            return found
    return _judge_each_input(subject, there, found, moved)


def _names(subject: Subject, positions: Iterable[int]) -> set[str]:
    """Names of some inputs of ``subject``: at other arguments, where an optional tensor is given or
    left out, they have other positions."""
    return {subject.problem.inputs[position].name for position in positions}


def _cotangents(outputs: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [cotangent(output, generator) for output in outputs]


def _as_finite(subject: Subject, outputs: Sequence[Output]) -> bool:
    """Whether outputs are finite, or infinite as at the sample (masks)."""
    if all(all_finite(item.value) for item in outputs):
        return True
    masked = any(not all_finite(item.value) for item in subject.run.outputs if item.differentiable)
    return masked and not any(bool(item.value.isnan().any()) for item in outputs)


def _judge_each_input(
    subject: Subject, there: Subject, found: JudgementElsewhere, moved: Sequence[int]
) -> JudgementElsewhere:
    """Judge input by input, with all kinds of direction."""
    function = replace(first_order(there.problem), project=_projections(subject, there.problem))
    decision = _decide_there(subject, there, function, KINDS, moved)
    pairs = list(zip(decision.judgement.inputs, decision.verdicts, strict=True))
    found.decision = decision
    found.positions = [item.index for item, verdict in pairs if verdict == DIFFERS]
    if there.sample.kind == "extreme":
        found.positions = [k for k in found.positions if decision.resolution_of(k) <= COARSEST]
    if found.positions:
        known = _names(subject, subject.wrong_inputs - subject.barely_wrong)
        inputs = there.problem.inputs
        found.positions = [k for k in found.positions if inputs[k].name not in known]
        found.verdict = WRONG if found.positions else RIGHT
    else:
        undecided = any(verdict in (UNSURE, DIFFERS) for verdict in decision.verdicts)
        found.verdict = UNDECIDED if undecided else RIGHT
    return found


def affords_another(subject: Subject, reserved: int = 0) -> bool:
    """Whether ``--max-calls`` leaves room for another judgement, and for calls ``reserved``."""
    return subject.affords(CALLS + reserved)


def judged_inputs(subject: Subject) -> list[int]:
    """The inputs that are judged at the sample, without those known to be wrong there."""
    wrong = subject.wrong_inputs if subject.first_order_is_known else set()
    wrong -= subject.barely_wrong
    return [position for position in subject.judged if position not in wrong]


def same_outputs(outputs: Sequence[Output], others: Sequence[Output]) -> bool:
    """Whether two calls of forward returned the same, to the last bit."""
    return [item.name for item in outputs] == [item.name for item in others] and all(
        one.value.layout == other.value.layout == torch.strided
        and not (one.value.is_nested or other.value.is_nested)
        and one.value.shape == other.value.shape
        and one.value.dtype == other.value.dtype
        and bool(((one.value == other.value) | (one.value.isnan() & other.value.isnan())).all())
        for one, other in zip(outputs, others, strict=True)
    )


def _finite(gradient: torch.Tensor | None) -> bool:
    return gradient is None or all_finite(dense(gradient))


def _decide_there(
    subject: Subject,
    there: Subject,
    function: Map,
    kinds: Sequence[str],
    inputs: Sequence[int] | None = None,
) -> Decision:
    spent = subject.problem.forward_calls + subject.problem.backward_calls
    return decide_within(
        subject.plan,
        there.problem,
        function,
        spent,
        lambda map: decide(map, seed=there.seed, kinds=kinds, inputs=inputs),
    )


def _projections(subject: Subject, problem: Problem) -> list[Projection | None]:
    """How directions are kept inside their domains: as at the sample, where shapes allow it."""
    projections = subject.first_order_map.project or []
    names = (item.name for item in subject.problem.inputs)
    known = dict(zip(names, projections, strict=False))
    return [
        known.get(item.name) if item.value.dim() >= 2 and _is_square(item.value) else None
        for item in problem.inputs
    ]


def _is_square(value: torch.Tensor) -> bool:
    return value.shape[-1] == value.shape[-2]


def _map(
    judgement: JudgementElsewhere,
    leaves: list[torch.Tensor],
    outputs: list[Output],
    project: list[Projection | None],
) -> Map:
    """x ↦ f(x) over ``outputs``. The first VJP at the point itself uses their graph; its gradients
    are stored in ``judgement``."""
    problem = judgement.subject.problem
    names = [item.name for item in outputs]
    point = problem.values()

    def evaluate(values: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        try:
            found = {item.name: item.value for item in problem.forward(values)}
        except OpRaised:
            return None
        return [found[name] for name in names] if all(n in found for n in names) else None

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        if judgement.gradients or not all(a is b for a, b in zip(values, point, strict=True)):
            found = problem.pull(dict(zip(names, cotangents, strict=True)), values)
        else:
            found = problem.backward(outputs, leaves, cotangents)
            judgement.gradients = found
        return [None if grad is None else dense(grad) for grad in found]

    values = [item.value.detach() for item in outputs]
    return Map(
        point, values, evaluate, pull_at, project=project, twin=lambda: float64_twin(problem)
    )
