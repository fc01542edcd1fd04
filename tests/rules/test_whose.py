"""Faults of PyTorch's own kernels are told as information: nothing here can be mended."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.experiments.subject import Subject
from gradlint.experiments.torch_owned_backward import TORCH_OWNED_NOTE, is_torch_owned_backward
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


class Copied(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone()


def excited(x, weight):
    """Squeeze and excite; with nothing to squeeze, the mean is NaN."""
    return x * (x.mean((2, 3)) @ weight).sigmoid()[:, :, None, None]


def excited_by_hand(x, weight):
    return excited(Copied.apply(x), weight)


def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = (2, 3, 4, 4), (3, 3)
    x, weight = (torch.randn(*shape, generator=generator) for shape in shapes)
    return x, weight


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (excited, True),
        (torch.nn.Conv2d(3, 2, 3), True),
        (torch.ops.aten.sin, True),
        (Copied, False),
        (excited_by_hand, False),
    ],
)
def test_whose_backward_it_is(subject: Callable[..., Subject], op: object, expected: bool) -> None:
    given = arguments() if op in (excited, excited_by_hand) else arguments()[:1]
    assert is_torch_owned_backward(subject(op, *given)) is expected


def test_an_operator_of_another_library_is_not_torchs(subject: Callable[..., Subject]) -> None:
    @torch.library.custom_op("whose::sine", mutates_args=())
    def sine(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    sine.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    assert not is_torch_owned_backward(subject(torch.ops.whose.sine, arguments()[0]))


def test_gradients_of_empty_tensors(probed: Callable[..., Outcome]) -> None:
    rule = by_code("GL705")
    assert rule is not None
    outcome = as_loud_as_evidence(probed(rule, excited, *arguments()))
    assert outcome.verdict == "pass"
    assert {finding.severity for finding in outcome.findings} == {"info"}
    assert TORCH_OWNED_NOTE in outcome.findings[0].cause_text
    assert probed(rule, excited_by_hand, *arguments()).verdict == "fail"


def test_layouts_that_pytorchs_kernels_misread(probed: Callable[..., Outcome]) -> None:
    def normalized(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.batch_norm(x, None, None, scale, training=True)

    generator = torch.Generator().manual_seed(0)
    x, scale = torch.randn(4, 5, generator=generator), torch.randn(5, generator=generator)
    rule = by_code("GL703")
    assert rule is not None
    outcome = as_loud_as_evidence(probed(rule, normalized, x, scale))
    assert outcome.verdict == "pass"  # torch 2.13 reads `scale` in a row: to be told, not to fail
    assert {finding.severity for finding in outcome.findings} <= {"info"}


class Halved(torch.nn.Linear):
    """A layer of a user's."""


class TwiceBackward(torch.nn.Module):
    """Applies a Function of a user's, in a container of PyTorch's."""

    def forward(self, x):
        return Copied.apply(x)


def hooked() -> torch.nn.Module:
    layer = torch.nn.Linear(4, 3)
    layer.register_forward_hook(lambda module, inputs, output: output.detach() * 2)
    return layer


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (torch.nn.Conv2d(3, 2, 3), True),
        (torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.RReLU()), True),
        (torch.nn.CrossMapLRN2d(3), True),
        (torch.nn.Sequential(torch.nn.ReLU(), TwiceBackward()), False),
        (torch.nn.Sequential(Halved(4, 3)), False),
        (torch.nn.Sequential(hooked()), False),
        (Copied, False),
        (excited, False),
    ],
)
def test_whose_the_operator_is(subject: Callable[..., Subject], op: object, expected: bool) -> None:
    given = arguments() if op is excited else arguments()[:1]
    made = subject(op, *given)
    assert made.of_torch is expected
    assert made.grounds().torch_owned is expected


def test_what_does_not_run_is_no_fault_of_pytorchs(subject: Callable[..., Subject]) -> None:
    made = subject(torch.nn.Linear(5, 2), arguments()[1])
    assert made.run.error is not None
    assert not made.grounds(silent=False).torch_owned


def test_a_layer_of_pytorchs_that_checkpointing_breaks_is_information(
    probed: Callable[..., Outcome],
) -> None:
    """RReLU saves its noise before it draws it, and checkpointing stops in between."""
    torch.manual_seed(0)
    found = probed(by_code("GL609"), torch.nn.RReLU(), arguments()[1])
    severities = [item.severity for item in as_loud_as_evidence(found).findings]
    assert severities in ([], ["info"])  # what lay in that memory may be right by chance
