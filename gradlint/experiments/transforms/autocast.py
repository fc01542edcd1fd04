"""Forward under autocast, backward outside of it: what training loops do."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import torch

from gradlint.experiments.baseline_comparison import compare, share_of
from gradlint.experiments.differentiable_maps import differentiable_names, first_order
from gradlint.experiments.subject import Subject
from gradlint.numerics.emulated_rounding import RoundedRuns
from gradlint.numerics.products import all_finite, equal, norm, widened
from gradlint.trace.op_io import OpRaised, Output
from gradlint.trace.problem import Problem

#: The dtype that autocast is asked for: the one that both CPUs and GPUs know.
LOW_DTYPE = torch.bfloat16

#: Times the change of the gradient under rounding to the low dtype, of inputs and cotangents or of
#: every result on the way, that computing in it may cost (heuristic: a few roundings more).
ROUNDINGS = 8.0

#: Computations that round every result, of which the one that moves a gradient most counts.
DRAWS = 4

#: Names of the wrappers of ``torch.amp.custom_fwd`` and ``custom_bwd``.
_WRAPPERS = {"forward": "decorate_fwd", "backward": "decorate_bwd"}


@dataclass
class AutocastRun:
    """The op with and without autocast.

    Args:
        reason: why there is nothing to compare.
        refused: what forward raised under autocast.
        raised: what backward raised.
        outputs: dtypes of the outputs under autocast, by name.
        changed: whether autocast changed any output.
        wrong: position of an input → its relative error, what is allowed, and the worst element
            with what was returned and expected.
    """

    reason: str = ""
    refused: OpRaised | None = None
    raised: OpRaised | None = None
    outputs: dict[str, str] = field(default_factory=dict)
    changed: bool = False
    wrong: dict[int, tuple[float, float, list[int], float, float]] = field(default_factory=dict)


def written_for_autocast(subject: Subject) -> bool:
    """Whether a Function of the op has one of torch.amp's decorators, or asks whether autocast is
    on: what it does under autocast is meant then."""
    functions = {node.function for node in subject.run.nodes}
    if subject.op.function is not None:
        functions.add(subject.op.function)
    for function in functions:
        for method, wrapper in _WRAPPERS.items():
            code = getattr(getattr(function, method, None), "__code__", None)
            if code is None:
                continue
            if code.co_name == wrapper or any("autocast" in name for name in code.co_names):
                return True
    return False


def in_float32(subject: Subject) -> Problem | str:
    """The op in float32, which autocast casts from; or why it can't be had."""
    problem = subject.problem
    if problem.has_sparse_inputs or not problem.inputs:
        return "inputs are sparse" if problem.inputs else "no input requires grad"
    dtypes = {value.dtype for value in problem.values()}
    if dtypes == {torch.float32}:
        return problem
    if not dtypes <= {torch.float32, torch.float64}:
        return "inputs are not in float32"
    device = str(problem.inputs[0].value.device)
    found = subject.problem.at(subject.sample.converted(torch.float32, device))
    found.preserve_state = problem.preserve_state
    return found


def under_autocast(subject: Subject, problem: Problem) -> AutocastRun:
    """Compare the gradients of ``problem`` with those after a forward under autocast."""
    cotangents = {
        name: value.to(torch.complex64 if value.is_complex() else torch.float32)
        for name, value in subject.run.cotangents.items()
    }
    device = problem.values()[0].device.type
    try:
        leaves, plain = problem.linearize()
        chosen = [o for o in plain if o.name in cotangents and o.differentiable]
        expected = problem.backward(chosen, leaves, [cotangents[o.name] for o in chosen])
    except OpRaised as raised:
        return AutocastRun(reason=f"in float32 {raised.phase} raises {type(raised.error).__name__}")
    if not all(all_finite(o.value) for o in chosen) or not _finite(expected):
        return AutocastRun(reason="in float32 outputs or gradients are not finite")
    found = AutocastRun()
    try:
        with warnings.catch_warnings(), torch.autocast(device, dtype=LOW_DTYPE):
            warnings.simplefilter("ignore")
            leaves, outputs = problem.linearize()
    except OpRaised as raised:
        found.refused = raised
        return found
    found.outputs = {o.name: str(o.value.dtype).removeprefix("torch.") for o in outputs}
    by_name = {o.name: o for o in outputs if o.name in cotangents and o.differentiable}
    found.changed = any(_changed(o, by_name.get(o.name)) for o in chosen)
    try:
        gradients = problem.backward(
            list(by_name.values()),
            leaves,
            [cotangents[name].to(o.value.dtype) for name, o in by_name.items()],
        )
    except OpRaised as raised:
        found.raised = raised
        return found
    pairs = zip(gradients, expected, strict=True)
    if all(compare(0, "", got, want, None) is None for got, want in pairs):
        return found  # whatever rounding is allowed
    rounded = _rounded(problem, cotangents)
    moves = [
        _distance(nearby, want) for nearby, want in zip(rounded or expected, expected, strict=True)
    ]
    found.wrong = _errors(gradients, expected, moves)
    if found.wrong:
        inside = _spread(problem, cotangents, subject.seed)
        moves = [max(pair) for pair in zip(moves, inside or moves, strict=True)]
        found.wrong = _errors(gradients, expected, moves)
    return found


def _finite(gradients: list[torch.Tensor | None]) -> bool:
    return all(gradient is None or all_finite(gradient) for gradient in gradients)


def _changed(before: Output, now: Output | None) -> bool:
    if now is None or now.value.dtype != before.value.dtype:
        return True
    return not equal(now.value.detach(), before.value.detach())


def _rounded(
    problem: Problem, cotangents: dict[str, torch.Tensor]
) -> list[torch.Tensor | None] | None:
    """The gradients without autocast at inputs and cotangents rounded to the low dtype."""

    def round_off(value: torch.Tensor) -> torch.Tensor:
        return value.to(LOW_DTYPE).to(value.dtype) if value.is_floating_point() else value

    try:
        low = {name: round_off(v) for name, v in cotangents.items()}
        return problem.pull(low, [round_off(value) for value in problem.values()])
    except OpRaised:
        return None


def _distance(a: torch.Tensor | None, b: torch.Tensor | None) -> float:
    """‖a − b‖; inf where it is not finite."""
    if a is None or b is None:
        return 0.0
    found = norm(widened(a) - widened(b))
    return found if found < float("inf") else float("inf")


def _spread(problem: Problem, cotangents: dict[str, torch.Tensor], seed: int) -> list[float] | None:
    """How far the gradients move where every operation rounds to the low dtype: terms may be large
    and cancel on the way. None where the op does not run in float64."""
    wide = problem.in_float64()
    if wide is None:
        return None
    try:
        function = first_order(wide)
        vs = [widened(cotangents[name]) for name in differentiable_names(wide)]
        exact = function.gradients_at(function.values, vs)
        runs = RoundedRuns(function, LOW_DTYPE, torch.Generator().manual_seed(seed))
        draws = [runs.gradients(vs) for _ in range(DRAWS)]
    except (OpRaised, KeyError):
        return None
    return [
        max(_distance(draw[position], exact[position]) for draw in draws)
        for position in range(len(exact))
    ]


def _errors(
    gradients: list[torch.Tensor | None], expected: list[torch.Tensor | None], moves: list[float]
) -> dict[int, tuple[float, float, list[int], float, float]]:
    triples = enumerate(zip(gradients, expected, moves, strict=True))
    found = {position: _error(*triple) for position, triple in triples}
    return {position: error for position, error in found.items() if error is not None}


def _error(
    got: torch.Tensor | None, want: torch.Tensor | None, moved: float
) -> tuple[float, float, list[int], float, float] | None:
    """The relative error of a gradient where it is beyond what the low dtype costs."""
    if want is None or want.is_complex() or not norm(want):
        return None
    there = widened(want)
    here = torch.zeros_like(there) if got is None else widened(got)
    if here.shape != there.shape:
        return None
    allowed = share_of(LOW_DTYPE) * norm(there) + ROUNDINGS * moved
    gap = here - there
    error = norm(gap) if all_finite(here) else float("inf")
    if error <= allowed:
        return None
    flat = int(torch.nan_to_num(gap.abs(), float("inf")).argmax())
    index = [int(k) for k in torch.unravel_index(torch.tensor(flat), there.shape)]
    values = (float(here.reshape(-1)[flat]), float(there.reshape(-1)[flat]))
    return error / norm(there), allowed / norm(there), index, *values
