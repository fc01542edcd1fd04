"""No output is connected to an input: does the function depend on them all the same?"""

from __future__ import annotations

import math

import torch

from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome, Rule
from gradlint.numerics.differences import LADDER, difference, estimate, significand_bits
from gradlint.numerics.directions import cotangent, direction
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem


# -- Whether outputs depend on inputs that no graph connects them to ------------------------------
def dependence(problem: Problem) -> tuple[str, str, float] | None:
    """(input, output, slope) of the first smooth dependence found by finite differences, or None.

    Piecewise constant dependence (rounding, comparisons) has no slope and is none.
    """
    generator = torch.Generator().manual_seed(problem.seed)
    at_sample = [
        o for o in problem.forward() if o.value.is_floating_point() or o.value.is_complex()
    ]
    for position, item in enumerate(problem.inputs):
        if item.value.numel() == 0:
            continue
        for output in at_sample:
            name = output.name

            def evaluate(value: torch.Tensor, position: int = position, name: str = name):  # type: ignore[no-untyped-def]
                values = problem.values()
                values[position] = value
                try:
                    found = problem.forward(values)
                except OpRaised:
                    return None
                chosen = [o.value for o in found if o.name == name]
                return chosen or None

            v = cotangent(output.value, generator)
            zero = torch.zeros_like(item.value)
            u = direction("signs", item.value, zero, generator)
            exponents = LADDER[significand_bits(item.value.dtype)]
            steps = [difference(evaluate, item.value, u, [v], zero, 2.0**-e) for e in exponents]
            found = estimate([step for step in steps if step is not None], 1.0)
            if found is None or not math.isfinite(found.bar):
                continue
            if abs(found.slope) > 10.0 * found.bar and abs(found.slope) > 1e-9:
                return item.name, name, found.slope
    return None


# -------------------------------------------------------------------------------------------------


def disconnected(subject: Subject, rule: Rule) -> Outcome:
    """No output is connected to the inputs: a finding only if the function depends on them."""
    outputs = [
        item
        for item in subject.run.outputs
        if item.value.is_floating_point() or item.value.is_complex()
    ]
    if not outputs:
        others = "".join(f" ({what})" for what in subject.problem.non_tensor_outputs[:1])
        note = f"no output is floating or complex{others}: nothing was judged"
        return Outcome("inconclusive", note=note)
    found = dependence(subject.problem)
    if found is None:
        return Outcome(
            "inconclusive",
            note="no output is differentiable, and none depends smoothly on an input: nothing was "
            "judged",
        )
    name, output, slope = found
    declared = subject.run.own is None and subject.op.kind == "function"
    finding = subject.finding(
        rule,
        f"no gradient reaches `{name}`: no output is connected to it",
        severity="warning" if declared else "error",
        cause="zero",
        cause_text=f"zero: `{output}` depends on `{name}` (slope {slope:.3g} along one direction), "
        "but carries no graph",
        input=name,
        output=output,
        evidence={"measured_slope": slope},
        help="remove .detach(), .data, no_grad or mark_non_differentiable from the path between "
        "them, or pass inputs without requires_grad if this is intended",
    )
    return Outcome("fail", [finding])
