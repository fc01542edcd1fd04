"""Wrong gradient.

What it finds
-------------
The gradient that backward returns differs from the derivative of what forward computes. The inputs
are moved along several random directions, and the measured change, with an error bar, is compared
with the change that the gradient predicts. A disagreement is confirmed with a fresh seed and
located to its elements, and its cause is named where one fits: transposed, sign, scaled, swapped
between inputs, zero, ignores grad_output, not linear in it, and others. Forms of forward are tried
too, in which one value is held, one number is another, or one argument has its default: where what
backward returns is exactly the derivative of such a form, the finding says in what it differs, and
in which line. A cause is named only where it explains every element that was measured.

Backward must also be linear in grad_output: it is called with a sum of cotangents, with 65536 times
and with a 1024th of one, which reveals clipping, rounding, thresholds and added constants.

Where forward itself stops gradients (`detach`, `.data`, `torch.no_grad`) and the gradient agrees
once they pass through, a warning names the line that stops them: it may be intended. It is
information where the gradient agrees with those values held constant and the stop is meant: it
stands in PyTorch's own code, or in a block under ``torch.no_grad`` that updates what a module keeps
(a power iteration, a moving average, a target network).

Where the gradient is right, it is measured again with float arguments moved away from the sample's
values, because a factor of 1 that backward leaves out shows only elsewhere. The same is done for
inputs whose elements are all equal, such as a weight of ones.

Of the gradient at symmetric matrices that were given, only the symmetric part counts: where that is
right, a difference is a warning, and information if the source speaks of symmetry. It is
information, too, where forward keeps numbers in 8 bits for backward and the gradient is right
without that; where it keeps them in 16 bits, that is named as the cause.

Why it matters
--------------
Training goes on and the loss may even fall, only more slowly, or towards something else. Nothing
else reveals the fault.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_output = grad_output.to(x.dtype)  # it differs under autocast
        return grad_output @ weight.mT, grad_output.mT @ x

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(2, 3, generator=generator)
        return x, torch.randn(3, 3, generator=generator).requires_grad_()
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_output = grad_output.to(x.dtype)  # it differs under autocast
        return grad_output @ weight.mT, x.mT @ grad_output

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(2, 3, generator=generator)
        return x, torch.randn(3, 3, generator=generator).requires_grad_()
```

How it looks
------------
```text
mylib/ops.py:13:41  GL401  wrong gradient for `weight`
  13 |         return grad_output @ weight.mT, grad_output.mT @ x
     |                                         ^^^^^^^^^^^^^^^^^^ returned for `weight`
  cause      transposed: taken as .mT it agrees to 3e-09 in 44 of 44 measurements
  where      index [1, 2]
  measured   6 of 9 elements differ; the gradient is off by 65 %
             sure: errors from 8e-9 on would have been seen, this one is over a million times larger
             index    returned   measured    error
             [1, 2]  -3.342167  -1.848253  1.5e+00
             [2, 1]  -1.848253  -3.342167  1.5e+00
             [2, 0]  +2.638085  +3.866359  1.2e+00
  gradcheck  slow: fails too
  help       return (grad_output.mT @ x).mT for `weight`
```

References
----------
- Moré & Wild, Estimating computational noise, SIAM J. Sci. Comput. 33 (2011)
- Extending torch.autograd: https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

import torch

from gradlint.diagnosis.precision import cast_down
from gradlint.experiments.differentiable_maps import differentiable_names
from gradlint.experiments.finite.nonfinite_gradients import at_the_sample
from gradlint.experiments.gradient_agreement import with_stored_indices
from gradlint.experiments.gradient_place import gradient_place, returned_expression
from gradlint.experiments.mismatch import grad_output_of, mismatch
from gradlint.experiments.other_forward import HELD
from gradlint.experiments.outcomes import any_defect, inconclusive, skipped
from gradlint.experiments.precision.against_float64 import right_in_float64
from gradlint.experiments.preconditions import (
    how_outputs_changed,
    what_was_not_moved,
    why_inconclusive,
    why_not_measurable,
    why_not_run,
)
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.coarse_storage import kept_coarse
from gradlint.experiments.value.disconnected import judge_disconnected
from gradlint.experiments.value.explained import what_explains
from gradlint.experiments.value.layout_at_fault import layout_at_fault
from gradlint.experiments.value.linearity import nonlinear_findings
from gradlint.experiments.value.of_backward_alone import of_backward_alone
from gradlint.experiments.value.other_float_arguments import judge_other_floats
from gradlint.experiments.value.quantized_codes import soften_codes
from gradlint.experiments.value.said_of_gradients import says_held
from gradlint.experiments.value.solver_tolerance import convergence_error, tolerance_cause
from gradlint.experiments.value.stopped_gradients import name_gradient_stops
from gradlint.experiments.value.subspaces import soften_subspaces
from gradlint.experiments.value.surrogates import (
    PIECEWISE,
    judge_surrogates,
    soften_surrogates,
)
from gradlint.experiments.value.symmetric_inputs import question_symmetry
from gradlint.experiments.value.tangent_spaces import soften_tangents
from gradlint.experiments.value.uneven_inputs import judge_unequal_elements
from gradlint.experiments.value.usual_surrogates import returns_one_number
from gradlint.model.report import CheckVerdict, Finding, Severity
from gradlint.model.rule import Outcome
from gradlint.numerics.decide import Decision
from gradlint.numerics.products import all_finite
from gradlint.numerics.verdict import DIFFERS, ROUNDED, UNSURE
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

#: Noise of a float64 op, in units of one rounding of its outputs, above which it must compute in
#: float32 inside: 2^29 is the ratio of the two epsilons, and a tenth of it leaves room for
#: averaging.
SINGLE_PRECISION_NOISE = 2.0**29 / 10.0


def probe(subject: Subject) -> Outcome:
    """Compare the gradients that backward returns with measured derivatives."""
    reason = why_not_run(subject)
    if reason:
        return skipped(reason)
    if not subject.problem.inputs:
        note = "no input requires grad: nothing was judged; give floating-point or complex tensors"
        return inconclusive(note)
    if not any(output.differentiable for output in subject.run.outputs):
        return judge_disconnected(subject, RULE)
    reason = why_not_measurable(subject)
    if reason:
        return inconclusive(reason)

    findings, declared = judge_surrogates(subject, RULE)
    measured = _measured(subject, declared)
    if measured.verdict == "pass":
        elsewhere, note = judge_other_floats(subject, RULE)
        elsewhere = elsewhere or judge_unequal_elements(subject, RULE)
        measured.findings += elsewhere
        measured.verdict = "fail" if elsewhere else "pass"
        measured.note = "; ".join(text for text in (measured.note, note) if text)
    measured.findings = findings + measured.findings
    if any_defect(findings):
        measured.verdict = "fail"
    return measured


def _measured(subject: Subject, declared: set[str]) -> Outcome:
    inputs = subject.problem.inputs
    if not subject.judged:
        return _nothing_judged(subject, declared)

    subject.problem.changed_outputs.clear()
    subject.problem.raised.clear()
    decision = subject.first_order
    findings: list[Finding] = []
    notes = [
        f"{name}: {int(mask.sum())} of {mask.numel()} elements are infinite whatever the inputs, "
        "and were left out"
        for name, mask in subject.problem.zeroed.items()
    ]
    unsure = []
    for place, item in enumerate(decision.judgement.inputs):
        verdict = decision.verdicts[place]
        name = inputs[item.index].name
        for note in (what_was_not_moved(inputs[item.index].value), decision.notes.get(item.index)):
            notes += [f"{name}: {note}"] if note else []
        if verdict == DIFFERS:
            findings.append(_wrong(subject, place, decision))
        elif verdict == ROUNDED:
            findings.append(_rounded(subject, place, decision))
        elif verdict == UNSURE:
            unsure.append(name)
        if item.kappa > SINGLE_PRECISION_NOISE and inputs[item.index].value.dtype == torch.float64:
            notes.append(f"{name}: the dtype is float64, but the noise is that of float32")

    nonlinear, said = nonlinear_findings(subject, RULE)
    nonlinear_inputs = {finding.input for finding in nonlinear}
    findings = [item for item in findings if item.input not in nonlinear_inputs] + nonlinear
    soften_surrogates(subject, findings)
    soften_codes(subject, findings)
    soften_tangents(subject, findings)
    soften_subspaces(subject, findings)
    name_gradient_stops(subject, findings)
    question_symmetry(subject, findings)
    notes += said
    if any_defect(findings):
        outcome: CheckVerdict = "fail"
    elif unsure:
        outcome = "inconclusive"
        explained = all(any(note.startswith(f"{name}: ") for note in notes) for name in unsure)
        reason = "" if explained else f": {why_inconclusive(subject)}"
        notes.append(f"could not tell for {', '.join(unsure)}{reason}")
    elif how_outputs_changed(subject):  # measured at some nearby values only
        outcome = "inconclusive"
        notes.append(how_outputs_changed(subject))
    else:
        outcome = "pass"
    resolutions = [
        decision.resolution_of(item.index)
        for place, item in enumerate(decision.judgement.inputs)
        if decision.verdicts[place] not in (DIFFERS, UNSURE) and inputs[item.index].value.numel()
    ]
    unconverged = convergence_error(subject) if outcome == "pass" else 0.0
    if unconverged:
        notes.append(
            f"forward iterates, and stops within {unconverged:.0e} of where it converges to: "
            "smaller errors of the gradient are not told apart from that"
        )
        resolutions.append(unconverged)
    return Outcome(outcome, findings, max(resolutions, default=None), "; ".join(notes))


def _nothing_judged(subject: Subject, declared: set[str]) -> Outcome:
    """Where no gradient can be compared: inconclusive if none is finite and GL302 finds no fault,
    since the function has no finite derivative there either."""
    if declared:
        return Outcome("pass")
    gradients = [gradient for gradient in subject.run.gradients or [] if gradient is not None]
    if not gradients or any(map(all_finite, gradients)) or at_the_sample(subject, RULE)[0]:
        return skipped("see GL103, GL302")
    inferred = subject.sample.origin == "inferred"
    where, other = ("the inferred", "inputs") if inferred else ("these", "other inputs")
    return inconclusive(
        f"no gradient is finite at {where} inputs: nothing could be judged; give {other}"
    )


def _wrong(subject: Subject, place: int, decision: object) -> Finding:
    assert isinstance(decision, Decision)
    problem = subject.problem
    index = decision.judgement.inputs[place].index
    item = problem.inputs[index]
    held = says_held(subject.op.function or subject.op.defining)
    found = mismatch(
        subject.first_order_map,
        decision,
        place,
        [i.name for i in problem.inputs],
        seed=subject.seed,
        outputs=[grad_output_of(output) for output in differentiable_names(problem)],
        arguments=subject.other_arguments(),
        subject=subject,
        held=held,
    )
    span = gradient_place(subject, item)
    explained = what_explains(subject, index, found.relative_error, worst=found.worst)
    by_tolerance = explained.get("explained") == "solver"
    cause = (
        tolerance_cause(subject)
        if by_tolerance
        else layout_at_fault(subject, index) or kept_coarse(subject, index) or found.cause
    )
    steps = cause is not None and cause.slug == "straight-through" and PIECEWISE in cause.text
    if steps and subject.sample.moved and returns_one_number(subject):
        # Nothing is left of what forward computes: that is no staircase.
        cause, steps = None, False
    help_text = (
        cause.help
        if cause
        else right_in_float64(item.name)
        if "in float64" in found.numbers
        else (
            f"compare backward's formula for `{item.name}` with the derivative of forward"
            + ("; the table shows where they differ" if found.worst is not None else "")
        )
    )
    if not explained:
        certain = cause.slug if cause and found.weight.get("confirmed") else None
        alone = of_backward_alone(subject, index, certain)
        if alone is not None:
            explained, help_text = {"explained": alone.explained}, alone.help
    if not explained and held and cause is not None and cause.slug == HELD:
        explained = {"explained": "surrogate"}
    outputs = subject.faulty_outputs(index)
    if len(outputs) > 1:
        found.numbers["outputs"] = outputs
    severity: Severity = "error"
    if steps:
        # An option such as `hard` asks for a surrogate.
        severity = "info" if subject.sample.moved else "warning"
    finding = subject.finding(
        RULE,
        f"gradient for `{item.name}` is seen to {found.relative_error:.0e} only, before forward "
        "has converged"
        if by_tolerance
        else f"wrong gradient for `{item.name}`",
        severity=severity,
        cause=cause.slug if cause else None,
        cause_text=cause.text if cause else "",
        input=item.name,
        output=outputs[0] if len(outputs) == 1 else None,
        index=found.worst,
        place=span,
        evidence=found.numbers,
        grounds=subject.grounds(**found.weight, **explained),
        help=help_text.replace("{expression}", returned_expression(span) or "…"),
    )
    return with_stored_indices(subject, index, finding)


def _rounded(subject: Subject, place: int, decision: object) -> Finding:
    assert isinstance(decision, Decision)
    source, position = decision.behind(place)
    judged = source.judgement.inputs[position]
    item = subject.problem.inputs[judged.index]
    worst = judged.worst
    error = worst.relative_error
    cause = cast_down([source.judgement.probe(0).gradients[judged.index]], item.name)
    return subject.finding(
        RULE,
        f"gradient for `{item.name}` is right to {error:.0e} only",
        severity="info",
        cause=cause.slug if cause else None,
        cause_text=cause.text if cause else "",
        input=item.name,
        place=gradient_place(subject, item),
        evidence={"relative_error": error, "resolution": worst.resolution},
        grounds=subject.grounds(relative_error=error),
        help=cause.help
        if cause
        else "a constant written with few digits, an epsilon left out of backward, or rounding "
        "inside backward would look like this",
    )
