"""An op as a function of its differentiable inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradlint.checking.examine import examine
from gradlint.model.events import Found
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.ops.vjp import refuses_grad
from gradlint.targets.build import from_object
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem


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


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x * x)


class Reentrant(torch.autograd.Function):
    """A checkpoint with a backward pass of its own, which torch.autograd.grad must not start."""

    factor = 1.0

    @classmethod
    def applied(cls, x: torch.Tensor) -> torch.Tensor:
        found = cls.apply(2 * x)
        assert isinstance(found, torch.Tensor)
        return 3 * found

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with torch.no_grad():
            return wave(x)

    @classmethod
    def backward(cls, ctx, g):
        if not torch.autograd._is_checkpoint_valid():
            raise RuntimeError("Checkpointing is not compatible with .grad()")
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = wave(x)
        torch.autograd.backward(y, g)
        return cls.factor * x.grad


class Halved(Reentrant):
    factor = 0.5


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a graph"])
def test_an_op_that_only_backward_differentiates(inside: bool) -> None:
    x = torch.tensor([0.3, -1.2], requires_grad=True)
    x.grad = torch.ones(2)
    bound = problem(Reentrant.applied if inside else Reentrant, x)
    inner, outer = (2.0, 3.0) if inside else (1.0, 1.0)
    expected = outer * inner * 2 * (inner * x) * torch.cos((inner * x) ** 2)
    v = torch.tensor([1.0, 2.0])
    if inside:  # nodes before it have let go of what they saved when it refuses
        leaves, outputs = bound.linearize()
        with pytest.raises(OpRaised) as raised:
            bound.backward(outputs, leaves, [v])
        assert "second time" in str(raised.value.error)
    for _ in range(2):
        (gradient,) = bound.pull({"output": v})
        assert gradient is not None
        torch.testing.assert_close(gradient, (v * expected).detach())
    assert x.grad.tolist() == [1.0, 1.0]
    leaves, outputs = bound.linearize()
    with pytest.raises(OpRaised) as raised:
        bound.backward(outputs, leaves, [v], create_graph=True)
    assert refuses_grad(raised.value.error)


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a graph"])
def test_its_gradient_is_judged(inside: bool) -> None:
    verdicts = {}
    for op in (Reentrant, Halved):
        events: list[Any] = []
        x = torch.tensor([0.3, -1.2, 0.7], dtype=torch.float64, requires_grad=True)
        examine(
            from_object(op.applied if inside else op),
            [Sample("s", "given", (x,))],
            Settings(select=("GL004", "GL401", "GL501", "GL503"), seed=1),
            events.append,
        )
        found = [event.finding for event in events if isinstance(event, Found)]
        verdicts[op] = sorted((finding.code, finding.cause) for finding in found)
    assert verdicts == {
        Reentrant: [("GL503", None)],
        Halved: [("GL401", "scaled"), ("GL503", None)],
    }
