"""Lazy modules take the shapes of their parameters from the inputs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import gradlint
from gradlint.inputs._infer import infer
from gradlint.inputs.lazy import fresh, is_lazy, with_shapes
from gradlint.inputs.not_found import NoInputsFound
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object


class Normalized(nn.Module):
    """Lazy parameters and lazy buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.LazyConv1d(4, 3, bias=False)
        self.norm = nn.LazyBatchNorm1d()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))


def given(*shape: int) -> Sample:
    x = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return Sample("given", "given", (x.requires_grad_(),))


def test_a_copy_gets_the_shapes_of_the_first_sample():
    module = Normalized()
    op = from_object(module)
    with_shapes(op, [given(5, 6, 7)], 0)
    assert is_lazy(module)
    assert op.module is op.call
    assert not is_lazy(op.module)
    shapes = {name: tuple(p.shape) for name, p in op.module.named_parameters()}
    assert shapes == {"conv.weight": (4, 6, 3), "norm.weight": (4,), "norm.bias": (4,)}
    assert {p.dtype for p in op.module.parameters()} == {torch.float64}
    assert op.notes == ["lazy parameters took their shapes from sample given"]


def test_the_same_seed_gives_the_same_parameters():
    weights = []
    for seed in (3, 3, 4):
        op = from_object(nn.LazyLinear(2))
        torch.rand(1)  # the state of the global generator is neither used nor changed
        with_shapes(op, [given(5, 6)], seed)
        weights.append(op.module.weight.detach())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


class Delayed(nn.Module):
    """The first call gives the parameter one number a channel, or one for all."""

    def __init__(self, *, grows: bool) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(1))
        self.ready = False
        self.grows = grows

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.ready:
            self.shift.data = torch.rand(x.shape[1] if self.grows else 1, dtype=x.dtype)
            self.ready = True
        return x + self.shift[:, None]


@pytest.mark.parametrize("grows", [True, False])
def test_a_first_call_that_changes_a_shape_comes_before_all_others(grows: bool):
    module = Delayed(grows=grows)
    op = from_object(module)
    with_shapes(op, [given(5, 6, 7)], 0)
    assert (op.module.ready, tuple(op.module.shift.shape)) == (grows, (6,) if grows else (1,))
    assert (module.ready, tuple(module.shift.shape)) == (False, (1,))
    assert len(op.notes) == grows


def test_copies_share_nothing():
    module = Normalized()
    copied = fresh(module)
    copied(torch.randn(5, 6, 7))
    assert is_lazy(module)
    assert not is_lazy(copied)


def test_other_modules_are_left_alone():
    module = nn.Linear(3, 2)
    op = from_object(module)
    with_shapes(op, [given(5, 3)], 0)
    assert op.module is module


def test_inputs_are_inferred():
    op = from_object(nn.LazyLinear(2))
    samples = infer(op)
    assert samples[0].args[0].shape == (3, 4)
    with_shapes(op, samples, 0)
    assert op.module.weight.shape == (2, 4)


def test_forward_that_refuses_the_sample_is_told():
    with pytest.raises(NoInputsFound) as raised:
        with_shapes(from_object(nn.LazyConv2d(4, 3)), [given(7)], 0)
    ((arguments, error),) = raised.value.attempts
    assert arguments == "given, from which lazy parameters take their shapes"
    assert error.startswith("RuntimeError: Expected 3D")


def test_lazy_modules_are_checked_and_swept():
    names = ["input", "weight", "bias"]
    module = nn.LazyLinear(2)
    report = gradlint.check(module, [(torch.randn(5, 3),)], select="GL401", seed=0)
    (target,) = report.to_dict()["targets"]
    assert target["verdict"] == "pass"
    assert [item["name"] for item in target["samples"][0]["args"]] == names
    swept = gradlint.sweep(module, [(torch.randn(5, 3),)], steps=3, seed=0)
    assert [item.name for item in swept.targets[0].inputs] == names
    assert is_lazy(module)
