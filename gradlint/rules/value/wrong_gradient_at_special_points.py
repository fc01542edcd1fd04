"""Wrong gradient only at special points.

What it finds
-------------
The gradient is right at the sample, but wrong at values that random inputs never take: all zeros;
all elements equal; magnitudes up to 10000 (in float32 1000); rows of boolean arguments that are all
False or True; and single elements that are zero, equal to another element, or equal to a number in
the op's arguments or source (the bounds of a clamp). At smooth points it must be the derivative. At
a kink it must lie between the one-sided derivatives, or be what autograd returns for forward's own
operations; any such value is right. Jumps, roots and inputs with a declared surrogate are left
alone. Cost: up to 6 forward and 6 backward calls shared with GL302, and 2 forward calls for each of
4 points and 8 elements.

Why it matters
--------------
Zeros, ties and saturated values are common in practice: padding, ReLU outputs, clamped and
quantized values. Their gradient is wrong, and no test with random inputs shows it.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * torch.where(x == 0, 0.0, s + x * s * (1 - s))

    @staticmethod
    def sample_inputs():
        return torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))

    @staticmethod
    def sample_inputs():
        return torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
```

How it looks
------------
```text
mylib/ops.py:13:16  GL402 warning  wrong gradient for `x` at [2, 4], where every element is zero
  13 |         return grad_output * torch.where(x == 0, 0.0, s + x * s * (1 - s))
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ returned for `x`
  where             index [2, 4]
  measured          worst elements
                    index    returned   measured    error
                    [2, 4]  +0.000000  +0.782071  7.8e-01
  slope from above  0.782071
  slope from below  0.782071
  x there           0
  warning because   seen only at inputs of another kind than those given
  help              the gradient is right elsewhere: look for comparisons with this value in
                    backward
```

References
----------
- Clarke, Optimization and Nonsmooth Analysis (1983)
- Bertoin et al., Numerical influence of ReLU'(0) on backpropagation, NeurIPS 2021
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import torch

from gradlint.experiments.finite.extremes import (
    JUDGED,
    WORDS,
    ExtremePoint,
    inside_of_ranges,
    make_extremes,
    parameters_of,
    with_one_unmasked,
    without_special,
)
from gradlint.experiments.finite.poles import divided_by_zeros
from gradlint.experiments.finiteness import values_of
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_finite
from gradlint.experiments.rounding_only import only_rounding
from gradlint.experiments.singular_inputs import gradients_under_autograd
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.clipped_slopes import clips_slope
from gradlint.experiments.value.guarding_clamps import is_guarded
from gradlint.experiments.value.lost_digits import is_lost_in_rounding
from gradlint.experiments.value.one_sided_slopes import WrongAtPoint
from gradlint.experiments.value.solver_tolerance import (
    MOST_SECONDS,
    enough_at_the_sample,
    find_early_end,
    find_solver,
    surrounded,
    unconverged_at,
)
from gradlint.experiments.value.special_points import SpecialPoints
from gradlint.model.report import Explanation, Finding, Where
from gradlint.model.rule import Outcome
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

#: Relative difference up to which backward returns what autograd does: where digits are lost, few
#: are left in either (heuristic).
SAME = 1e-3


def probe(subject: Subject) -> Outcome:
    """Compare gradients at special points with the slopes of the function there."""
    reason = why_not_finite(subject) or subject.once(make_extremes).reason
    if reason:
        return skipped(reason)
    decision = subject.first_order
    pairs = zip(decision.judgement.inputs, decision.verdicts, strict=True)
    right = [item.index for item, verdict in pairs if verdict in (AGREES, ROUNDED)]
    if not right:
        return skipped("the gradient at the sample is not right: see GL401")
    points = SpecialPoints(subject, right)
    if not points.measurable:
        return skipped("differences in 16 bits are too coarse, and the op refuses float64")
    found: dict[int, list[WrongAtPoint]] = {}
    extremes = subject.once(make_extremes)
    for extreme in filter(None, map(extremes.named, JUDGED)):
        for wrong in points.wrong(extreme):
            # At a kink of several parts, each may have a gradient between its sides and their sum
            # none: what autograd returns then is right by the same choice.
            if not (wrong.kink and _as_autograd_has_it(subject, wrong, extreme)):
                found.setdefault(wrong.position, []).append(wrong)
    for position in only_rounding(subject) if found else ():
        found.pop(position, None)
    wrong_ones = [wrong for those in found.values() for wrong in those]
    limited = _limited_by_tolerance(subject, right) if wrong_ones else set()
    limited |= _limited_by_iterations(subject, wrong_ones)
    findings = [_shown(subject, points, those, limited) for those in found.values()]
    if findings:
        return Outcome("fail", findings)
    if not points.judged:
        return skipped("forward is not finite and smooth enough at any special point")
    return Outcome("pass", note=f"judged: {', '.join(dict.fromkeys(points.judged))}")


def _shown(
    subject: Subject,
    points: SpecialPoints,
    wrong_ones: Sequence[WrongAtPoint],
    limited: Collection[tuple[int, str]],
) -> Finding:
    """What is said of one input: the first of its wrong gradients that nothing explains, else the
    first. A forward that has not converged at large values may hide no wrong mask at zero."""
    explained = []
    for wrong in wrong_ones:
        kind, why = _with_zeros_elsewhere(subject, points, wrong)
        why = why or _explanation(subject, wrong, limited)
        if why is None:
            return _finding(subject, wrong, kind, None)
        explained.append((wrong, kind, why))
    return _finding(subject, *explained[0])


def _limited_by_tolerance(subject: Subject, right: list[int]) -> set[tuple[int, str]]:
    """Position and words of what is wrong at special points only because forward iterates to a
    tolerance: it is right there with a tighter one."""
    extremes = subject.once(make_extremes)
    zeros = extremes.named("zeros")
    solver = subject.once(find_solver)
    if solver is None and zeros is not None:
        solver = find_early_end(subject, zeros.make())
    if solver is None or solver.call_s > MOST_SECONDS:
        return set()

    before = _wrong_now(subject, right)
    with solver.tightening(subject.problem):
        return before - _wrong_now(subject, right)


def _wrong_now(subject: Subject, inputs: list[int]) -> set[tuple[int, str]]:
    """Position and words of what is wrong at special points, as the op runs now: outputs and
    gradients there are those of now, too."""
    points, extremes = SpecialPoints(subject, inputs), make_extremes(subject)
    shown = (extreme for name in JUDGED if (extreme := extremes.named(name)) is not None)
    return {(w.position, w.where) for extreme in shown for w in points.wrong(extreme)}


def _limited_by_iterations(
    subject: Subject, wrong_ones: Collection[WrongAtPoint]
) -> set[tuple[int, str]]:
    """What is wrong only because forward does not iterate often enough at such values: with more
    iterations, backward returns another gradient there, or what it returns is right."""
    extremes = subject.once(make_extremes)
    found = set()
    for position in sorted({wrong.position for wrong in wrong_ones}):
        for around in enough_at_the_sample(subject, position):
            with surrounded(subject.problem, around):
                if not _wrong_now(subject, [position]):
                    found |= {(w.position, w.where) for w in wrong_ones if w.position == position}
    for wrong in wrong_ones:
        shown = (extreme for extreme in map(extremes.named, JUDGED) if extreme is not None)
        whole = next((extreme for extreme in shown if extreme.words == wrong.where), None)
        extreme, index = (whole, None) if whole else (extremes.named("single"), wrong.index)
        if extreme is not None and unconverged_at(subject, extreme.make(), wrong.position, index):
            found.add((wrong.position, wrong.where))
    return found


def _with_zeros_elsewhere(
    subject: Subject, points: SpecialPoints, wrong: WrongAtPoint
) -> tuple[Where, Explanation | None]:
    """The kind of values at which ``wrong`` is seen, and what explains it. Where it needs a zero in
    another input, of which all values have one sign, the values are not of the sample's kind: the
    power mean is smooth in its exponent, and its formula divides by it, which explains it. So does
    zero in a parameter of a module."""
    single = subject.once(make_extremes).named("single")
    if wrong.kind != "sample" or single is None:
        return wrong.kind, None
    others = {k for k in range(len(subject.problem.inputs)) if k != wrong.position}
    own = others & set(parameters_of(subject))
    tries: tuple[tuple[set[int], Explanation | None], ...] = ((own, "parameter"), (others, None))
    for zeros_of, explained in tries:
        instead = inside_of_ranges(subject, single, zeros_of=zeros_of) if zeros_of else None
        if instead is not None and all(w.position != wrong.position for w in points.wrong(instead)):
            divides = divided_by_zeros(subject, single.make(), outside=zeros_of) & zeros_of
            return "special", explained or ("divisor" if divides else None)
    return wrong.kind, None


def _explanation(
    subject: Subject, wrong: WrongAtPoint, limited: Collection[tuple[int, str]]
) -> Explanation | None:
    if (wrong.position, wrong.where) in limited:
        return "solver"
    if clips_slope(subject, wrong.position):
        return "clipped"
    large = subject.once(make_extremes).named("large")
    if large is not None and wrong.where == large.words:
        return _explanation_at_large(subject, wrong, large)
    if wrong.where == WORDS["masked"] and _needs_a_row_without_any(subject, wrong):
        return "degenerate"
    single = subject.once(make_extremes).named("single")
    at = (wrong.position, wrong.index)
    if wrong.kind == "sample" and single is not None and is_guarded(subject, single.make(), at):
        return "clamped"
    return None


def _explanation_at_large(
    subject: Subject, wrong: WrongAtPoint, large: ExtremePoint
) -> Explanation | None:
    if _as_autograd_has_it(subject, wrong, large):
        return "rounding"
    if is_lost_in_rounding(subject, wrong.position, large.make()):
        return "rounding"
    if is_guarded(subject, large.make(), (wrong.position, wrong.index)):
        return "clamped"
    return "parameter" if _needs_large_parameters(subject, wrong, large) else None


def _needs_large_parameters(subject: Subject, wrong: WrongAtPoint, large: ExtremePoint) -> bool:
    """Whether the gradient is right at data as large, with the module's parameters as they are:
    training moves none to 10000, where an iteration may not converge."""
    own = set(parameters_of(subject))
    if not own or wrong.position in own:
        return False
    instead = without_special(subject, large, own)
    points = SpecialPoints(subject, [wrong.position])
    return not list(points.wrong(instead)) and bool(points.judged)


def _needs_a_row_without_any(subject: Subject, wrong: WrongAtPoint) -> bool:
    """Whether the gradient is right where a mask leaves one element of each row, as the sample's
    own may: of a row of which it leaves none, as of scores that are all filled with one number,
    hardly anything is meant."""
    instead = with_one_unmasked(subject)
    if instead is None:
        return True
    points = SpecialPoints(subject, [wrong.position])
    return not list(points.wrong(instead)) and bool(points.judged)


def _as_autograd_has_it(subject: Subject, wrong: WrongAtPoint, extreme: ExtremePoint) -> bool:
    """Whether autograd through forward's own operations returns the same at ``extreme``: then it is
    not backward's formula that is wrong there; at large values, the digits of forward are lost."""
    plain = gradients_under_autograd(subject, extreme.problem, extreme.make())
    own = (extreme.gradients or [])[wrong.position] if extreme.gradients else None
    other = plain.get(subject.problem.inputs[wrong.position].name)
    found = None if own is None else values_of(own)
    if found is None or other is None or found.shape != other.shape:
        return False
    return torch.allclose(found, other, rtol=SAME, atol=0.0) and bool(found.any())


def _finding(
    subject: Subject, wrong: WrongAtPoint, kind: Where, explained: Explanation | None
) -> Finding:
    item = subject.problem.inputs[wrong.position]
    at = f" at {wrong.index}" if wrong.index else ""
    nearest = wrong.nearest
    kink = f"outside the slopes {wrong.left:.4g} from below and {wrong.right:.4g} from above"
    return subject.finding(
        RULE,
        f"wrong gradient for `{item.name}`{at}, {wrong.where}",
        severity="warning" if wrong.kink else None,
        cause="kink" if wrong.kink else None,
        cause_text=f"kink: {kink}" if wrong.kink else "",
        input=item.name,
        index=wrong.index,
        place=gradient_place(subject, item),
        evidence={
            "elements": [
                {
                    "index": wrong.index,
                    "returned": wrong.returned,
                    "measured": nearest,
                    "error": abs(wrong.returned - nearest),
                }
            ],
            "slope_from_above": wrong.right,
            "slope_from_below": wrong.left,
            f"{item.name} there": wrong.value if math.isfinite(wrong.value) else str(wrong.value),
        },
        grounds=subject.grounds(
            where=kind,
            relative_error=wrong.relative_error,
            explained=explained,
        ),
        help="the gradient is right elsewhere: look for comparisons with this value in backward, "
        "sums over equal elements, and for guards that are missing in it or that forward lacks",
    )
