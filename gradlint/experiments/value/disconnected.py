"""No output is connected to an input: does the function depend on them all the same?"""

from __future__ import annotations

from gradlint.experiments.input_dependence import first_dependence
from gradlint.experiments.outcomes import inconclusive
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome, Rule


def judge_disconnected(subject: Subject, rule: Rule) -> Outcome:
    """No output is connected to the inputs: a finding only if the function depends on them."""
    outputs = [
        item
        for item in subject.run.outputs
        if item.value.is_floating_point() or item.value.is_complex()
    ]
    if not outputs:
        others = "".join(f" ({what})" for what in subject.problem.non_tensor_outputs[:1])
        note = f"no output is floating-point or complex{others}: nothing was judged"
        return inconclusive(note)
    found = first_dependence(subject.problem)
    if found is None:
        return inconclusive(
            "no output is differentiable, and none depends smoothly on an input: nothing was judged"
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
