"""Check forward mode: against backward by the adjoint identity, and against the function itself.

If forward mode and backward are right, ⟨v, J·u⟩ = ⟨Jᵀv, u⟩ holds up to rounding, so a backward that
was judged right confirms forward mode. If the identity does not hold, or backward is not checked,
t ↦ f(x + t·u) is judged as a function of the single number t, with J·u as its derivative.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.autograd.forward_ad as fwd
from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin._arguments import Tensors
from gradlint.dropin._as_map import as_map
from gradlint.dropin._compare import ROUNDINGS, close
from gradlint.dropin._function import Function
from gradlint.dropin._mismatch import faulty_outputs
from gradlint.dropin._options import Options
from gradlint.dropin._tolerance import torch_accepts
from gradlint.dropin._torch import ask_torch, unaffordable
from gradlint.dropin.failure import Failure, inform, warn
from gradlint.numerics.decide import Decision, decide
from gradlint.numerics.directions import cotangent, move_scale, signs
from gradlint.numerics.map import Map, working_bits
from gradlint.numerics.products import norm, real_dot, rms, unit_roundoff, widened
from gradlint.numerics.verdict import DIFFERS, TOLERATED, UNSURE


def check_forward(function: Function, options: Options, trusted: bool) -> list[Failure]:
    """Judge J·u for every input.

    Args:
        trusted: whether backward was judged to be right.
    """
    judged = as_map(function)
    failures = []
    generator = torch.Generator().manual_seed(options.seed + 11)
    for place, x in enumerate(judged.values):
        if not x.numel():
            continue
        for part, u in _directions(x, generator):
            dtypes = _dtypes(function, place, u) if options.check_grad_dtypes else ""
            if dtypes:
                failures.append(Failure("Forward AD gradient has dtype mismatch.", [dtypes]))
            pushed = _where_finite(function, tangents(function, judged.values, {place: u}))
            found = _not_finite(function, pushed) or _judge_along(
                function, judged, place, u, pushed, options, trusted, generator
            )
            if found is None:
                continue
            prefix = f"While considering the {part} part of complex inputs only, " if part else ""
            outputs, lines = found
            failures += [
                Failure(
                    f"{prefix}Jacobian computed with forward mode mismatch for output {output} "
                    f"with respect to input {place},",
                    lines if output == outputs[0] else [],
                )
                for output in outputs
            ]
            break
    return failures


def tangents(
    function: Function, values: Sequence[torch.Tensor], moves: dict[int, torch.Tensor | None]
) -> list[torch.Tensor | None]:
    """J·u of every differentiable output at ``values``.

    Args:
        moves: input position → u, in that input's dtype; None leaves the input without a tangent,
            and inputs that are not listed get zeros.
    """
    with fwd.dual_level():
        stand_ins = {}
        for place, value in enumerate(values):
            u = moves.get(place, torch.zeros_like(value))
            # A copy, because the function's own tensors are used outside this dual level too.
            primal = function.laid_out(place, value)
            stand_ins[place] = primal if u is None else fwd.make_dual(primal, u.to(value.dtype))
        returned: Tensors = function.call_with(stand_ins)
        found: list[torch.Tensor | None] = [
            fwd.unpack_dual(returned[k]).tangent for k in function.differentiable
        ]
        return found


def _directions(x: torch.Tensor, generator: torch.Generator) -> list[tuple[str, torch.Tensor]]:
    """Two directions with independent signs, or the only one of a single real number; for complex
    inputs one imaginary and one real."""
    scale = move_scale(x)
    real = torch.empty(x.shape, dtype=torch.float64, device=x.device)
    drawn = [scale * signs(real, generator) for _ in range(2)]
    if x.is_complex():
        return [("imaginary", drawn[0] * 1j), ("real", drawn[1] + 0j)]
    return [("", u) for u in drawn[: min(x.numel(), 2)]]


def _judge_along(
    function: Function,
    judged: Map,
    place: int,
    u: torch.Tensor,
    pushed: list[torch.Tensor | None],
    options: Options,
    trusted: bool,
    generator: torch.Generator,
) -> tuple[list[int], list[str]] | None:
    """The outputs whose J·u is wrong, and lines that describe the error; none if torch's slow mode
    says that J is right, None if this J·u is."""
    bits = working_bits(judged, judged.values[place])
    gap = scale = 0.0
    if trusted:
        vs = [cotangent(y, generator) for y in judged.outputs]
        gradient = judged.pull(vs)[place]
        right = 0.0 if gradient is None else real_dot(gradient, u)
        left, weight = 0.0, 0.0 if gradient is None else norm(widened(gradient).abs() * u.abs())
        for v, ju in zip(vs, pushed, strict=True):
            if ju is not None:
                left += real_dot(v, ju)
                weight += norm(widened(v).abs() * widened(ju).abs())
        gap, scale = abs(left - right), weight
        if gap <= ROUNDINGS * 2.0 ** (1 - bits) * scale:
            return None
    line = _line(function, judged, place, u, pushed)
    decision = decide(line, seed=options.seed)
    verdict = decision.verdicts[0]
    allowed = max(TOLERATED[bits], options.rtol) * scale + options.atol * norm(u)
    if verdict == UNSURE and trusted and gap > allowed:
        return list(range(len(judged.outputs))), [
            f"forward mode and backward disagree: ⟨v, J·u⟩ and ⟨Jᵀv, u⟩ differ by {gap:.3g} "
            f"of {scale:.3g}"
        ]
    if verdict == UNSURE and not trusted:
        return _undecided(function, decision, place, options)
    if verdict != DIFFERS:
        return None
    item = decision.judgement.inputs[0]
    worst = item.worst
    if _tolerated(function, line, pushed, u, options, worst.h):
        inform(
            f"{options.name}: forward mode differs for input {place} by "
            f"{worst.relative_error:.1e} of its size, within atol={options.atol:g} and "
            f"rtol={options.rtol:g}"
        )
        return None
    lines = [
        f"along one direction forward mode returns {worst.claimed:.6g}, the function changes by "
        f"{worst.measured:.6g} (error bar {worst.bar:.1e})"
    ]
    outputs = faulty_outputs(line, 0, options.seed)
    return outputs, lines + _worst_element(line, pushed, outputs[0], worst.h)


def _where_finite(
    function: Function, found: list[torch.Tensor | None]
) -> list[torch.Tensor | None]:
    """J·u without the elements at which the outputs are infinite, like the −∞ of a mask: those are
    constants, as in backward."""
    return [
        ju if ju is None else ju.masked_fill(torch.isinf(y.detach()), 0.0)
        for y, ju in zip(function.outputs, found, strict=True)
    ]


def _not_finite(
    function: Function, pushed: Sequence[torch.Tensor | None]
) -> tuple[list[int], list[str]] | None:
    """The outputs that have no derivative, because they or their J·u are NaN or infinite, and a
    line on the first of them; None if there are none."""
    found, lines = [], []
    for k, (y, ju) in enumerate(zip(function.outputs, pushed, strict=True)):
        for name, tensor in ((f"output {k}", y.detach()), (f"J·u of output {k}", ju)):
            bad = None if tensor is None else tensor.isnan() | (tensor.isinf() & ~y.isinf())
            if tensor is None or bad is None or not bool(bad.any()):
                continue
            index = bad.nonzero()[0].tolist()
            found.append(k)
            lines.append(
                f"{name} is {tensor[tuple(index)].item()} at index {index} ({int(bad.sum())} of "
                f"{tensor.numel()} elements are NaN or infinite)"
            )
            break
    return (found, lines[:1]) if found else None


def _undecided(
    function: Function, decision: Decision, place: int, options: Options
) -> tuple[list[int], list[str]] | None:
    """What torch's slow mode says of forward mode, if it is affordable, where neither backward nor
    a measurement can tell."""
    why = decision.notes.get(0) or "too noisy or not smooth there"
    doubt = f"forward mode of input {place}: {why}"
    refusal = unaffordable(function, options)
    if refusal:
        warn(
            "gradlint is inconclusive and returns True although nothing was verified: "
            f"{doubt}; {refusal}"
        )
        return None
    try:
        ask_torch(function.call, function.args, options, function=function, forward_mode=True)
    except GradcheckError as error:
        says = f"gradlint is inconclusive ({why}); torch's slow path says this"
        return list(range(len(function.outputs))), [*str(error).splitlines(), says]
    if not options.tolerant:
        warn(f"gradlint is inconclusive, torch's slow path passes: {doubt}")
    return [], []


def _line(
    function: Function,
    judged: Map,
    place: int,
    u: torch.Tensor,
    pushed: list[torch.Tensor | None],
) -> Map:
    """t ↦ f(x + t·u) with its derivative by forward mode."""
    x = judged.values[place]
    here = torch.zeros(1, dtype=torch.float64)

    def point(t: torch.Tensor) -> list[torch.Tensor]:
        values = list(judged.values)
        values[place] = (widened(x) + float(t) * u).to(x.dtype)
        return values

    def evaluate(values: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
        return judged.evaluate(point(values[0]))

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        found = pushed
        if values[0] is not here:
            found = _where_finite(function, tangents(function, point(values[0]), {place: u}))
        slope = sum(
            real_dot(v, ju) for v, ju in zip(cotangents, found, strict=True) if ju is not None
        )
        return [torch.tensor([slope], dtype=torch.float64)]

    # x + t·u is rounded, which changes f by J times that rounding, about ε·J·u.
    rounding = [0.0 if ju is None else unit_roundoff(x.dtype) * rms(ju) for ju in pushed]
    return Map([here], judged.outputs, evaluate, pull_at, rounding)


def _tolerated(
    function: Function,
    line: Map,
    pushed: list[torch.Tensor | None],
    u: torch.Tensor,
    options: Options,
    h: float,
) -> bool:
    """Whether J·u is within the tolerances, element by element, or torch's slow mode accepts J."""
    pairs = [_claimed_and_measured(line, pushed, k, h) for k in range(len(pushed))]
    if all(pair is not None for pair in pairs) and all(
        bool(((a - b).abs() <= options.atol * norm(u) + options.rtol * b.abs()).all())
        for a, b in filter(None, pairs)
    ):
        return True
    return torch_accepts(function, options, forward_mode=True)


def _claimed_and_measured(
    line: Map, pushed: list[torch.Tensor | None], output: int, h: float
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """J·u of one output, as claimed and as measured with step ``h``."""
    after, before = (line.evaluate([torch.full((1,), t, dtype=torch.float64)]) for t in (h, -h))
    if after is None or before is None:
        return None
    measured = (widened(after[output]) - widened(before[output])) / (2.0 * h)
    ju = pushed[output]
    return (torch.zeros_like(measured) if ju is None else widened(ju)), measured


def _worst_element(
    line: Map, pushed: list[torch.Tensor | None], output: int, h: float
) -> list[str]:
    """A line on the element of J·u with the largest error, at the step that decided."""
    found = _claimed_and_measured(line, pushed, output, h)
    if found is None:
        return []
    claimed, measured = found
    error = (claimed - measured).abs()
    if not error.numel():
        return []
    index = [int(k) for k in torch.unravel_index(error.argmax(), error.shape)]
    at = tuple(index)
    return [
        f"worst at index {index} of output {output}: forward mode {claimed[at].item():.6g}, "
        f"measured {measured[at].item():.6g}"
    ]


def _dtypes(function: Function, place: int, u: torch.Tensor) -> str:
    for k, ju in zip(
        function.differentiable, tangents(function, function.values, {place: u}), strict=True
    ):
        output = function.outputs[function.differentiable.index(k)]
        if ju is not None and ju.is_complex() != output.is_complex():
            return f"the tangent of output {k} is {ju.dtype}, the output is {output.dtype}"
    return ""


def check_undefined_tangents(function: Function, options: Options) -> list[Failure]:
    """Check that an input without a tangent is treated like one whose tangent is zero."""
    generator = torch.Generator().manual_seed(options.seed + 12)
    moves: dict[int, torch.Tensor | None] = {
        place: move_scale(x) * signs(x, generator) for place, x in enumerate(function.values)
    }
    for place, value in enumerate(function.values):
        zeros = tangents(function, function.values, {**moves, place: torch.zeros_like(value)})
        nothing = tangents(function, function.values, {**moves, place: None})
        for k, (a, b) in enumerate(zip(zeros, nothing, strict=True)):
            if a is not None and b is not None and not close(a, b):
                return [
                    Failure(
                        f"Mismatch in tangent values for output with index: {k} when input: "
                        f"{place} has an undefined tangent value.",
                        ["without a tangent, an input must be treated as if its tangent were zero"],
                    )
                ]
    return []
