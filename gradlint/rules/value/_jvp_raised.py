"""What it means that forward mode raises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.report import Finding
    from gradlint.rules._rule import Rule
    from gradlint.rules._subject import Subject
    from gradlint.trace._problem import OpRaised

#: How PyTorch rejects what jvp returned: pattern, cause, meaning, next step.
_REJECTED = (
    (
        r"jvp returned an invalid number of forward gradients \(expected (\d+) but got (\d+)\)",
        "wrong-number-of-tangents",
        "jvp must return one tangent for each output of forward",
        "return as many tangents as forward returns outputs, None for those that have none",
    ),
    (
        r"expected Variable or None",
        "tangent-not-a-tensor",
        "jvp returned something that is no tensor",
        "return tensors, or None for outputs without a derivative",
    ),
    (
        r"forward gradient that has a different size",
        "wrong-tangent-shape",
        "a tangent must have the shape of its output",
        "reduce or expand the tangent as forward does with its values",
    ),
    (
        r"Expected both tensor and its forward grad",
        "none-tangent",
        "jvp returned None for an output that depends on the input, or a tangent of another dtype",
        "return a tangent of the output's dtype; zeros where it does not depend on the inputs",
    ),
    (
        r"the jvp is not returning a view|jvp is not (returning|a view)",
        "tangent-not-in-place",
        "forward returns an input, or a view of it, and so must jvp return the tangent, or a view",
        "do to the tangent in jvp what forward does to the input: the same view, the same in-place "
        "operation",
    ),
)

#: How forward mode is refused: no jvp somewhere on the way.
_REFUSED = re.compile(
    r"must implement the jvp|does not support it because it has not been implemented"
    r"|forward AD|forward mode AD|vmap|functorch"
)


def raised(
    subject: Subject,
    rule: Rule,
    functions: list[type],
    position: int,
    names: list[str],
    error: OpRaised,
) -> Finding | None:
    """A finding on what was raised while input ``position`` alone had a tangent; None where it is
    an open refusal."""
    from gradlint.diagnosis._engine_errors import error_line, error_text
    from gradlint.rules._raised import defining_file, raised_evidence, raised_place, user_frames
    from gradlint.targets import source

    name = subject.problem.inputs[position].name
    prefer = defining_file(subject)
    text = error_text(error.error)
    evidence = raised_evidence(error.error, prefer)
    for pattern, slug, meaning, fix in _REJECTED:
        if re.search(pattern, text):
            return subject.finding(
                rule,
                f"jvp for `{name}` is rejected: {slug.replace('-', ' ')}",
                cause=slug,
                cause_text=f"{slug}: {meaning}",
                input=name,
                place=source.method(functions[0], "jvp"),
                evidence=evidence,
                help=fix,
            )
    frames = [frame.name for frame in user_frames(error.error, prefer)]
    if isinstance(error.error, NotImplementedError) or "jvp" not in frames:
        return None
    if _REFUSED.search(text) and frames[-1] != "jvp":
        return None
    alone = _runs_with_all(subject, position, names)
    line = error_line(error.error)
    return subject.finding(
        rule,
        f"jvp raises {type(error.error).__name__} where "
        + (f"only `{name}` has a tangent" if alone else f"`{name}` has a tangent"),
        cause="none-tangent" if alone else None,
        cause_text=f"none-tangent: {line}" if alone else line,
        input=name,
        place=raised_place(error.error, prefer) or source.method(functions[0], "jvp"),
        evidence=evidence,
        help="an input without tangent gives None after ctx.set_materialize_grads(False): test "
        "each tangent for None, or leave that call out"
        if alone
        else "run the op under torch.autograd.forward_ad with the sample shown",
    )


def _runs_with_all(subject: Subject, position: int, names: list[str]) -> bool:
    """Whether jvp runs once every input has a tangent."""
    import torch

    from gradlint.rules.value._forward_mode import push
    from gradlint.trace._problem import OpRaised

    values = subject.problem.values()
    if len(values) < 2:
        return False
    try:
        push(subject.problem, values, [torch.ones_like(value) for value in values], names)
    except OpRaised:
        return False
    return True
