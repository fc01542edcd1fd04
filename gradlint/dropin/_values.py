"""Are the values of the gradients right? They are judged together, then for each output."""

from __future__ import annotations

import torch
from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin._as_map import as_map
from gradlint.dropin._compare import close
from gradlint.dropin._decided import decided, suspects
from gradlint.dropin._fast import unsettled
from gradlint.dropin._function import Function
from gradlint.dropin._mismatch import describe
from gradlint.dropin._options import Options
from gradlint.dropin._tolerance import beyond_tolerances
from gradlint.dropin._torch import ask_torch, unaffordable
from gradlint.dropin.failure import Failure, inform, raise_failures, warn
from gradlint.numerics.decide import Decision
from gradlint.numerics.directions import cotangent
from gradlint.numerics.map import Map
from gradlint.numerics.products import all_finite, dense, norm, rms, widened
from gradlint.numerics.verdict import DIFFERS, UNSURE

#: Torch's message if a function without a graph depends on its inputs.
EXPECTED_ZERO = "Numerical gradient for function expected to be zero"


def unequal_shares(function: Function, seed: int) -> list[int]:
    """Positions of the inputs whose gradients, taken for each output alone, do not add up to the
    gradient for all outputs together; one backward per output, and one for all."""
    outputs = function.outputs
    if len(outputs) < 2:
        return []
    generator = torch.Generator().manual_seed(seed + 7)
    # Of order one, not scaled to the outputs: if those underflow, so would what is compared.
    vs = [cotangent(torch.ones_like(y.detach()), generator) for y in outputs]
    totals = [None if g is None else dense(g) for g in function.backward(outputs, vs)]
    tops = [0.0] * len(totals)
    left = list(totals)
    for y, v in zip(outputs, vs, strict=True):
        for place, share in enumerate(function.backward([y], [v])):
            if share is None:
                continue
            share = dense(share)
            rest = left[place]
            left[place] = -share if rest is None else rest - share
            if share.numel():
                tops[place] = max(tops[place], float(share.abs().max()))
    # A gradient is a sum over outputs whose terms are of the size of v∘y per unit of the input.
    weighed = sum(norm(widened(v) * widened(y)) for v, y in zip(vs, outputs, strict=True))
    found = []
    for place, (rest, value) in enumerate(zip(left, function.values, strict=True)):
        top = max(tops[place], weighed / (rms(value) or 1.0))
        if rest is not None and not close(rest, torch.zeros_like(rest), top):
            found.append(place)
    return found


def check_values(function: Function, options: Options) -> list[Failure]:
    """Judge the gradients of all differentiable outputs with respect to every input."""
    judged = as_map(function)
    inputs = unsettled(judged, options) if options.fast_mode else None
    return [] if inputs == [] else _judged(function, judged, options, inputs)


def check_each_output(function: Function, options: Options) -> list[Failure]:
    """Judge the gradient of each output by itself, after they were right together.

    For outputs that a loss does not use, the engine calls backward with undefined gradients, and
    backward may then take another branch.
    """
    inputs = unequal_shares(function, options.seed)
    if not inputs:
        return []
    maps = [as_map(function, [place]) for place in function.differentiable]
    return [
        failure
        for k, judged in enumerate(maps)
        for failure in _judged(function, judged, options, inputs, k)
    ]


def _judged(
    function: Function,
    judged: Map,
    options: Options,
    inputs: list[int] | None = None,
    only_output: int | None = None,
) -> list[Failure]:
    """Judge ``judged``, and consider the caller's tolerances and torch's slow path.

    Args:
        inputs: positions of the inputs to judge; default all.
        only_output: number of the only output of ``judged``, if that is not the map of all.
    """
    judged, decision = decided(function, judged, options.seed, inputs=inputs)
    differing = suspects(decision, DIFFERS)
    wrong = beyond_tolerances(function, judged, decision, differing, options)
    _remark(decision, [place for place in differing if place not in wrong], options)
    failures = []
    if wrong:
        failures = describe(function, judged, decision, wrong, options, only_output)
    unsure = suspects(decision, UNSURE)
    if unsure and not failures and only_output is None:
        failures = _undecided(function, judged, decision, unsure, options)
    return failures


def _remark(decision: Decision, tolerated: list[int], options: Options) -> None:
    for place in tolerated:
        item = decision.judgement.inputs[place]
        inform(
            f"{options.name}: the gradient of input {item.index} differs by "
            f"{item.worst.relative_error:.1e} of its size, within atol={options.atol:g} and "
            f"rtol={options.rtol:g}"
        )


def check_disconnected(function: Function, options: Options) -> None:
    """Check that no output depends on an input, since no output has a graph.

    Raises:
        GradcheckError: an output does.
    """
    floating = function.floating
    if not floating:
        warn(
            "gradlint judged nothing: the function returned no floating or complex tensor, so "
            "it has no gradient to check"
        )
        return
    judged = as_map(function, floating)
    if options.fast_mode and not unsettled(judged, options):
        return
    _, decision = decided(function, judged, options.seed)
    wrong = suspects(decision, DIFFERS)
    if wrong:
        item = decision.judgement.inputs[wrong[0]]
        raise_failures(
            [
                Failure(
                    EXPECTED_ZERO,
                    [
                        "no output requires grad, but the function depends on input "
                        f"{item.index}: slope {item.worst.measured:.3g} along one direction",
                        "look for .detach(), .data, torch.no_grad() or a copy through NumPy",
                    ],
                )
            ],
            options,
        )


def _undecided(
    function: Function, judged: Map, decision: Decision, unsure: list[int], options: Options
) -> list[Failure]:
    """Let torch's slow path judge the inputs that the measurements could not, if affordable."""
    doubts = [_doubt(function, judged, decision, place) for place in unsure]
    broken = list(dict.fromkeys(text for text, failed in doubts if failed))
    reasons = "; ".join(text for text, _ in doubts)
    if broken:
        index = decision.judgement.inputs[unsure[0]].index
        return [Failure(f"Jacobian mismatch for output 0 with respect to input {index},", broken)]
    refusal = unaffordable(function, options)
    if refusal:
        if function.raised is not None and not _measured(decision, unsure):
            raise function.raised
        warn(
            "gradlint is inconclusive and returns True although nothing was verified: "
            f"{reasons}; {refusal}"
        )
        return []
    try:
        ask_torch(function.call, function.args, options, function=function)
    except GradcheckError as error:
        text = str(error).splitlines()
        return [
            Failure(
                text[0],
                [*text[1:], f"gradlint is inconclusive ({reasons}); torch's slow path says this"],
            )
        ]
    if not options.tolerant:
        warn(f"gradlint is inconclusive, torch's slow path passes: {reasons}")
    return []


def _measured(decision: Decision, unsure: list[int]) -> bool:
    return any(pair.h > 0.0 for place in unsure for pair in decision.judgement.inputs[place].pairs)


def _doubt(function: Function, judged: Map, decision: Decision, place: int) -> tuple[str, bool]:
    """Why input ``place`` could not be judged, and whether that is a failure in itself (an output
    or a gradient that is not finite)."""
    item = decision.judgement.inputs[place]
    name = f"input {item.index}"
    for k, output in enumerate(function.outputs):
        output = output.detach()
        if not all_finite(output):
            bad = (~torch.isfinite(output)).nonzero()
            return (
                f"output {k} is {output[tuple(bad[0])].item()} at index {bad[0].tolist()} "
                f"({len(bad)} of {output.numel()} elements are NaN or infinite): it has no "
                "derivative there",
                True,
            )
    gradient = judged.pull([torch.ones_like(y) for y in judged.outputs])[item.index]
    if gradient is not None and not all_finite(gradient):
        bad = (~torch.isfinite(gradient)).nonzero()
        return (
            f"the gradient of {name} is {gradient[tuple(bad[0])].item()} at index "
            f"{bad[0].tolist()} ({len(bad)} of {gradient.numel()} elements are NaN or infinite), "
            "although the function is finite",
            True,
        )
    note = decision.notes.get(item.index, "")
    if function.shapes_change:
        note = "the outputs change their shape or dtype when the inputs move"
    elif not note and function.raised is not None:
        note = f"the function raised {type(function.raised).__name__} when the inputs moved"
    return f"{name}: {note or 'too noisy or not smooth there'}", False
