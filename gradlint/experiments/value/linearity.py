"""Whether backward is linear in grad_output, as every vector-Jacobian product is.

Multiples are powers of two: they change no rounding, so that a correct backward scales exactly as
long as nothing over- or underflows. Sums do round, and their rounding is measured before a
disagreement counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.diagnosis.evidence import unravel
from gradlint.experiments.gradient_agreement import with_stored_indices
from gradlint.experiments.gradient_place import gradient_place, returned_expression
from gradlint.experiments.mismatch import plain_number
from gradlint.experiments.rounding_only import only_rounding
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.repeated_backward import Replay
from gradlint.experiments.value.solver_tolerance import surrounded
from gradlint.model.report import Finding
from gradlint.model.rule import Rule
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.directions import cotangent
from gradlint.numerics.products import norm, rms, unit_roundoff, widened
from gradlint.numerics.verdict import TOLERATED
from gradlint.trace.op_io import OpRaised
from gradlint.trace.tightened import Tightened

#: Cotangents are multiplied by this: the scale that torch.amp.GradScaler starts with.
LARGE = 2.0**16

#: They are also multiplied by this, as the mean over a batch of a thousand does (heuristic; much
#: smaller factors would underflow where the op computes in half precision).
SMALL = 2.0**-10

#: float16 overflows at 65504 and loses bits below 6e-5: its cotangents are multiplied by this, and
#: never made smaller.
LARGE_HALF = 2.0**3

#: A factor that is not a power of two: the error that it causes measures the rounding.
ODD_FACTOR = 1.125

#: Multiples of that rounding by which a sum may be off (heuristic: largest of many against
#: largest of many).
ROUNDINGS = 64.0

#: Share of a gradient that is allowed for rounding in 32 bits and more, at most.
SINGLE_PRECISION_SHARE = TOLERATED[24]

#: Share of a gradient up to which a solver that ends at a tolerance may be the reason (heuristic:
#: that of a gradient which is a thousand times smaller than the one for which it was set).
SOLVED = 1e-2

_SOLVED_HELP = (
    "backward iterates to a tolerance: make it relative to the size of grad_output, which a loss "
    "that is scaled or averaged changes"
)

#: Note on a gradient that would be zero without rounding.
ROUNDING_NOTE = "its gradient is nothing but rounding error"

#: A departure that is smaller by this factor in float64 is rounding of the op's own dtype: ε falls
#: by 5e8 from float32 to float64, and clipping, thresholds and constants stay (heuristic: between
#: the two). A product with exp(A) computed from a block that holds 65536 · grad_output beside A
#: was off by 1.4e-3 in float32 and by 3e-12 in float64.
ROUNDING_FALLS = 1e4

#: Note on a gradient that is linear in float64.
IN_FLOAT64_NOTE = "it is linear in grad_output up to the rounding of its dtype"

#: Seed of the second cotangents, relative to the run's.
SEED = 7


@dataclass
class _Departure:
    """How a gradient departs from linearity, with the worst element of one input.

    ``multiple`` is the factor of the cotangent; None where it is a sum of two.
    """

    text: str
    index: list[int]
    returned: Any
    expected: Any
    error: float
    relative: float
    multiple: float | None

    @property
    def slug(self) -> str:
        return "additive-constant" if "constant" in self.text else "not-linear"


def nonlinear_findings(subject: Subject, rule: Rule) -> tuple[list[Finding], list[str]]:
    """Findings of ``rule`` for inputs whose gradient is not linear in grad_output, and notes.

    Inputs with a wrong gradient are left out: GL401 reports them already. Costs one forward and
    three backwards where nothing is found, one more in 16 bits.
    """
    gradients = subject.run.gradients or []
    known = subject.wrong_inputs
    chosen = [k for k in subject.judged if k not in known and gradients[k] is not None]
    if not chosen or any(output.value.is_nested for output in subject.run.outputs):
        return [], []
    try:
        suspects, notes = _suspects(subject, chosen)
        if not suspects:
            return [], notes
        departures = _confirm(subject, suspects)
        rounding = only_rounding(subject) if departures else set()
        in_float64 = _linear_in_float64(subject, departures)
        iterates = bool(departures) and _iterates(subject, departures.values())
    except OpRaised as raised:
        name = type(raised.error).__name__
        return [], [f"{raised.phase} raised {name} at another grad_output"]
    notes += [
        f"{subject.problem.inputs[k].name}: {ROUNDING_NOTE}" for k in departures if k in rounding
    ]
    notes += [f"{subject.problem.inputs[k].name}: {IN_FLOAT64_NOTE}" for k in in_float64]
    reported = {k: found for k, found in departures.items() if k not in rounding | in_float64}
    return [_finding(subject, rule, k, found, iterates) for k, found in reported.items()], notes


def _suspects(subject: Subject, chosen: Sequence[int]) -> tuple[list[int], list[str]]:
    """Inputs for which g(v + w) = g(v) + g(c·w)/c or g(s·v) = s·g(v) does not hold."""
    replay = Replay(subject.problem)
    vs, ws = _cotangents(subject, replay)
    large, small = _multiples(subject)
    far = replay.pull([large * w for w in ws])
    # Rounding may hide in the sum that a gradient is clipped: the multiple is checked alone too.
    coarse = max((_share(subject, k) for k in chosen), default=0.0) > SINGLE_PRECISION_SHARE
    up = replay.pull([large * v for v in vs]) if coarse else None
    both = replay.pull([v + w for v, w in zip(vs, ws, strict=True)])
    near = replay.pull([small * v for v in vs]) if small < 1.0 else None
    # The run's own gradients are g(v), unless some outputs have been left out since then.
    masked = bool(subject.problem.zeroed)
    here = replay.pull(vs) if masked else subject.run.gradients or []
    suspects = []
    overflowed = False
    for k in chosen:
        g, g_far, g_both = (_widened_or_zero(found[k], here[k]) for found in (here, far, both))
        if not bool(torch.isfinite(g_far).all()):
            overflowed = True
            continue
        top = max(_largest(g), _largest(g_far) / large)
        allowed = _share(subject, k) * top + _cancelled(subject, k, vs)
        if not _in_range(here[k], top, large, small):
            continue
        off = _largest(g_both - g - g_far / large)
        # All multiples round in the same way, even where the gradient is nothing but rounding.
        scaled = 0.0 if up is None else _largest(_widened_or_zero(up[k], here[k]) / large - g)
        if near is not None:
            scaled = max(scaled, _largest(_widened_or_zero(near[k], here[k]) / small - g))
        if not (off <= allowed and scaled <= _share(subject, k) * _largest(g)):
            suspects.append(k)
    notes = [f"gradients overflow at {large:g} times grad_output"] if overflowed else []
    return suspects, notes


def _confirm(subject: Subject, suspects: Sequence[int]) -> dict[int, _Departure]:
    """How each suspect departs from linearity, with a fresh forward for every backward."""
    replay = Replay(subject.problem, fresh=True)
    vs, ws = _cotangents(subject, replay)
    large, small = _multiples(subject)
    g_v, again, g_w = replay.pull(vs), replay.pull(vs), replay.pull(ws)
    far = replay.pull([large * v for v in vs])
    near = replay.pull([small * v for v in vs]) if small < 1.0 else None
    odd = replay.pull([ODD_FACTOR * v for v in vs])
    both = replay.pull([v + w for v, w in zip(vs, ws, strict=True)])
    found = {}
    for k in suspects:
        g, repeated, h = (_widened_or_zero(item[k], g_v[k]) for item in (g_v, again, g_w))
        top = max(_largest(g), _largest(h))
        allowed = _share(subject, k) * top + ROUNDINGS * _largest(g - repeated)
        trials = [(_widened_or_zero(far[k], g_v[k]), large, allowed)]
        if near is not None:
            trials.insert(0, (_widened_or_zero(near[k], g_v[k]), small, allowed))
        departed = [
            _departure(_describe(g, got, multiple), got, multiple * g, multiple)
            for got, multiple, bar in trials
            if bool(torch.isfinite(got).all()) and not _largest(got / multiple - g) <= bar
        ]
        if departed:
            found[k] = max(departed, key=lambda item: item.relative)
        else:
            rounding = _largest(_widened_or_zero(odd[k], g_v[k]) - ODD_FACTOR * g)
            allowed += _cancelled(subject, k, vs)
            sum_of = _widened_or_zero(both[k], g_v[k])
            if not _largest(sum_of - g - h) <= allowed + ROUNDINGS * rounding:
                found[k] = _departure("g(v + w) is not g(v) + g(w)", sum_of, g + h, None)
    return found


def _linear_in_float64(subject: Subject, departures: dict[int, _Departure]) -> set[int]:
    """Those of ``departures`` that all but vanish where the op computes in float64."""
    wide = subject.problem.in_float64() if departures else None
    if wide is None:
        return set()
    cotangents = _cotangents(subject, Replay(subject.problem))
    vs, ws = ([widened(v) for v in each] for each in cotangents)
    replay = Replay(wide)
    linear: set[int] = set()
    try:
        if [item.value.shape for item in replay.outputs] != [v.shape for v in vs]:
            return linear
        g_v, g_w = replay.pull(vs), replay.pull(ws)
        for k, found in departures.items():
            if g_v[k] is None:
                continue
            g, h = (_widened_or_zero(each[k], g_v[k]) for each in (g_v, g_w))
            if found.multiple is None:
                moved, exact = [v + w for v, w in zip(vs, ws, strict=True)], g + h
            else:
                moved, exact = [found.multiple * v for v in vs], found.multiple * g
            gap = _largest(_widened_or_zero(replay.pull(moved)[k], g) - exact)
            if ROUNDING_FALLS * gap <= found.relative * _largest(exact):
                linear.add(k)
    except OpRaised:
        return set()  # an op that refuses float64 is judged in its own dtype
    finally:
        subject.problem.forward_calls += wide.forward_calls
        subject.problem.backward_calls += wide.backward_calls
    return linear


def _iterates(subject: Subject, departures: Iterable[_Departure]) -> bool:
    """Whether backward makes other numbers of calls for multiples of grad_output, as a solver does
    that ends at a tolerance; its error is no multiple, and small beside the gradient."""
    if any(found.relative > SOLVED for found in departures):
        return False
    vs, ws = _cotangents(subject, Replay(subject.problem))
    tried = [[multiple * v for v in vs] for multiple in (1.0, *_multiples(subject))]
    tried.append([v + w for v, w in zip(vs, ws, strict=True)])
    return len({_calls_at(subject, cotangents) for cotangents in tried}) > 1


def _calls_at(subject: Subject, cotangents: Sequence[torch.Tensor]) -> int:
    """The calls of PyTorch's functions in a forward, and in a backward for ``cotangents``."""
    counted = Tightened(backward=True)
    with surrounded(subject.problem, lambda: counted):
        Replay(subject.problem, fresh=True).pull(cotangents)
    return counted.calls


def _cotangents(subject: Subject, replay: Replay) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Two for each output, both of order one: scaled by its size, that of an output which cancels
    to zero would make rounding as large as everything else."""
    outputs = replay.outputs
    generator = torch.Generator().manual_seed(subject.seed + SEED)
    vs = [subject.run.cotangents[item.name] for item in outputs]
    return vs, [cotangent(torch.ones_like(item.value.detach()), generator) for item in outputs]


def _multiples(subject: Subject) -> tuple[float, float]:
    tensors = [item.value for item in subject.problem.inputs]
    tensors += [item.value for item in subject.run.outputs]
    if any(tensor.dtype in (torch.float16, torch.complex32) for tensor in tensors):
        return LARGE_HALF, 1.0
    return LARGE, SMALL


def _share(subject: Subject, position: int) -> float:
    """Share of the largest element by which rounding may move another."""
    dtypes = [subject.problem.inputs[position].value.dtype]
    dtypes += [item.value.dtype for item in subject.run.outputs if item.differentiable]
    bits = min(significand_bits(dtype) for dtype in dtypes)
    return TOLERATED[max(known for known in TOLERATED if known <= bits)]


def _cancelled(subject: Subject, position: int, vs: Sequence[torch.Tensor]) -> float:
    """Rounding that remains where a gradient cancels to zero: a share of the weighted outputs,
    divided by the typical size of the input. What is not finite (gaps in a series) has no size."""
    value = subject.problem.inputs[position].value
    outputs = [item.value for item in subject.run.outputs if item.differentiable]
    weighed = sum(norm(_finite(widened(v) * widened(y))) for v, y in zip(vs, outputs, strict=True))
    eps = max(unit_roundoff(tensor.dtype) for tensor in (value, *outputs))
    return ROUNDINGS * eps * weighed / (rms(_finite(value)) or 1.0)


def _finite(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor`` with zeros in place of what is not finite."""
    return torch.where(torch.isfinite(tensor), tensor, 0.0)


def _in_range(like: torch.Tensor | None, top: float, large: float, small: float) -> bool:
    """Whether multiples of the gradient stay far from the limits of its dtype."""
    assert like is not None
    limits = torch.finfo(like.dtype)
    if not 0.0 < top < math.inf:
        return False
    if large == LARGE_HALF:
        return top * large < limits.max / LARGE_HALF and top > limits.tiny / unit_roundoff(
            like.dtype
        )
    return top * large < math.sqrt(limits.max) and top * small > math.sqrt(limits.tiny)


def _widened_or_zero(gradient: torch.Tensor | None, like: torch.Tensor | None) -> torch.Tensor:
    assert like is not None
    return widened(torch.zeros_like(like) if gradient is None else gradient)


def _largest(tensor: torch.Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0


def _describe(g: torch.Tensor, got: torch.Tensor, multiple: float) -> str:
    """What was done to a gradient at ``multiple`` times its cotangent, in words."""
    where = f"at {multiple:g} times grad_output"
    moved = (got / multiple - g).abs() > 0.1 * _largest(g)
    if not bool(moved.any()):
        moved = (got / multiple - g).abs() >= 0.5 * _largest(got / multiple - g)
    shrunk = bool((got.abs() <= multiple * g.abs())[moved].all())
    if multiple > 1.0 and shrunk:
        return (
            f"large gradients are clipped: {where} the largest is {_largest(got):.3g}, and not "
            + (f"{multiple * _largest(g):.3g}")
        )
    if multiple < 1.0 and bool((got[moved] == 0).all()):
        return f"small gradients are set to zero or rounded away {where}"
    offset = (got - multiple * g) / (1.0 - multiple)
    if multiple < 1.0 and _largest(offset - offset.mean()) <= 1e-3 * _largest(offset):
        constant = plain_number(offset.mean())
        return (
            f"a constant of about {constant:.3g} is added"
            if isinstance(constant, float)
            else "a constant is added"
        )
    return f"{where} the gradient is not scaled by the same factor"


def _departure(
    text: str, got: torch.Tensor, expected: torch.Tensor, multiple: float | None
) -> _Departure:
    error = (got - expected).abs().reshape(-1)
    at = int(error.argmax())
    scale = _largest(expected) or 1.0
    return _Departure(
        text,
        list(unravel(at, tuple(got.shape))),
        plain_number(got.reshape(-1)[at]),
        plain_number(expected.reshape(-1)[at]),
        float(error[at]),
        float(error[at]) / scale,
        multiple,
    )


def _finding(
    subject: Subject, rule: Rule, position: int, found: _Departure, iterates: bool
) -> Finding:
    item = subject.problem.inputs[position]
    span = gradient_place(subject, item)
    finding = subject.finding(
        rule,
        f"gradient for `{item.name}` is not linear in grad_output",
        cause=found.slug,
        cause_text=f"{found.slug}: {found.text}",
        input=item.name,
        index=found.index,
        place=span,
        evidence={
            "relative_error": found.relative,
            "elements": [
                {
                    "index": list(found.index),
                    "returned": found.returned,
                    "measured": found.expected,
                    "error": found.error,
                }
            ],
        },
        help=_SOLVED_HELP
        if iterates
        else "a vector-Jacobian product is linear: remove clipping, rounding, thresholds and "
        "constants from backward (torch.nn.utils.clip_grad_norm_ clips where it belongs), or "
        f"declare `{returned_expression(span) or '…'}` as a surrogate",
        grounds=subject.grounds(explained="solver") if iterates else None,
    )
    return with_stored_indices(subject, position, finding)
