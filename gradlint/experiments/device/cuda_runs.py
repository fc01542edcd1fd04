"""What the rules on devices share: where they apply, and comparing with the ordinary run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from gradlint.experiments.baseline_comparison import Difference, compare, make_baseline, share_of
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Rule
from gradlint.model.sample import map_tensors
from gradlint.numerics.products import widened
from gradlint.trace.op_io import Output
from gradlint.trace.problem import Problem

#: Share of the largest element that convolutions and matrix products may lose where they compute
#: in TF32, with its 11 significand bits.
TF32_SHARE = 1e-2


def on_device(subject: Subject, device: str) -> Problem:
    """The op on the same sample with every tensor on ``device``."""
    sample = subject.sample

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(device).requires_grad_(tensor.requires_grad)

    args, kwargs = map_tensors((sample.args, sample.kwargs), move)
    return subject.problem.at(replace(sample, args=args, kwargs=kwargs))


def differences(
    subject: Subject,
    outputs: dict[str, torch.Tensor],
    gradients: Sequence[torch.Tensor | None],
) -> tuple[list[Difference], list[Difference]]:
    """Where outputs and gradients are not those of the ordinary run, beyond rounding.

    Args:
        outputs: by name; those that the ordinary run does not have are left out.
        gradients: one an input.
    """
    base = subject.once(make_baseline)
    assert base is not None
    found = []
    for position, (name, expected) in enumerate(base.outputs.items()):
        got = outputs.get(name)
        if got is None or not expected.is_floating_point():
            continue
        here = got.detach().to(expected.device)
        finite = torch.nan_to_num(widened(expected), 0.0, 0.0, 0.0).abs()
        top = finite.max() if finite.numel() else finite.sum()
        allowed = _share(expected) * top * torch.ones_like(finite)
        difference = compare(position, name, here, expected, allowed)
        if difference is not None:
            found.append(difference)
    here_gradients = [
        g if g is None or like is None else g.detach().to(like.device)
        for g, like in zip(gradients, base.gradients, strict=True)
    ]
    wrong = [
        difference
        for difference in base.differences(here_gradients)
        if not _within_tf32(difference, base.gradients[difference.position])
    ]
    return found, wrong


def findings_of_differences(
    subject: Subject,
    rule: Rule,
    outputs: Sequence[Output],
    gradients: Sequence[torch.Tensor | None],
    what: str,
    help_text: str,
) -> list[Finding]:
    """Findings of what is not as in the ordinary run: outputs, then gradients.

    Args:
        what: words behind the name: "differs between cpu and cuda".
    """
    values = {item.name: item.value for item in outputs}
    wrong_outputs, wrong = differences(subject, values, gradients)
    found = [_finding(subject, rule, item, what, help_text, output=True) for item in wrong_outputs]
    return found + [_finding(subject, rule, item, what, help_text, output=False) for item in wrong]


def _finding(
    subject: Subject, rule: Rule, difference: Difference, what: str, help_text: str, *, output: bool
) -> Finding:
    item = None if output else subject.problem.inputs[difference.position]
    name = f"`{difference.name}`" if item is None else f"gradient for `{item.name}`"
    count = f" ({difference.count} of {difference.total} elements)" if difference.total > 1 else ""
    return subject.finding(
        rule,
        f"{name} {what}{count}",
        output=difference.name if item is None else None,
        input=None if item is None else item.name,
        index=difference.index,
        place=None if item is None else gradient_place(subject, item),
        evidence=difference.evidence(),
        help=help_text,
    )


def _tf32() -> bool:
    return bool(torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32)


def _share(tensor: torch.Tensor) -> float:
    share = share_of(tensor.dtype)
    return max(share, TF32_SHARE) if tensor.dtype == torch.float32 and _tf32() else share


def _within_tf32(difference: Difference, expected: torch.Tensor | None) -> bool:
    if difference.kind != "value" or expected is None or not expected.numel():
        return False
    top = float(torch.nan_to_num(widened(expected), 0.0, 0.0, 0.0).abs().max())
    return difference.error <= _share(expected) * top
