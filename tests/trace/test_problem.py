"""An op as a function of its differentiable inputs."""

from __future__ import annotations

import pytest
import torch

from gradlint.inputs import Sample
from gradlint.targets import from_object
from gradlint.trace._problem import OpRaised, Problem


class ScaleInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return 3 * g


def problem(op: object, *args: torch.Tensor) -> Problem:
    return Problem(from_object(op), Sample("s", "given", args))


def test_an_in_place_op_sees_its_inputs_untouched_from_the_first_call_on() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    bound = problem(ScaleInPlace, x)
    for _ in range(2):
        leaves, (output,) = bound.linearize()
        assert output.value.tolist() == [3.0, 6.0]
        (gradient,) = bound.backward([output], leaves, [torch.ones(2)])
        assert gradient is not None
        assert gradient.tolist() == [3.0, 3.0]
    assert x.tolist() == [1.0, 2.0]


def test_what_was_raised_and_what_changed_is_kept_in_words() -> None:
    def op(x: torch.Tensor) -> torch.Tensor:
        if float(x.detach()[0]) < 0.0:
            raise ValueError("negative")
        return x[x > 1.0]

    bound = problem(op, torch.tensor([0.5, 2.0], requires_grad=True))
    bound.forward()
    assert (bound.raised, bound.changed_outputs) == ([], [])
    bound.forward([torch.tensor([1.5, 2.0])])
    assert bound.changed_outputs == ["output: float32[1] and float32[2]"]
    with pytest.raises(OpRaised, match="forward raised ValueError"):
        bound.forward([torch.tensor([-1.0, 2.0])])
    assert bound.raised == ["ValueError: negative"]


def test_the_very_tensors_that_the_op_got() -> None:
    got: list[torch.Tensor] = []

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([2.0]))
            self.register_buffer("offset", torch.tensor([1.0]))

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            got[:] = [x, mask, self.weight, self.offset]
            return x * self.weight * mask + self.offset

    x, mask = torch.tensor([3.0], requires_grad=True), torch.tensor([True])
    bound = problem(Scaled(), x, mask)
    with bound.handing_over() as handed:
        bound.forward()
        bound.forward()
    assert [item.name for item in handed] == ["x", "mask", "weight", "offset"]
    assert all(item.tensor is mine for item, mine in zip(handed, got, strict=True))
    assert [item.position for item in handed] == [0, None, 1, None]
    assert [item.buffer for item in handed] == [False, False, False, True]
    assert [item.value.tolist() for item in handed] == [[3.0], [True], [2.0], [1.0]]
    bound.forward()
    assert len(handed) == 4  # the last call of the body
    assert handed[0].tensor is not got[0]
