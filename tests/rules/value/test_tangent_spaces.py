"""Gradients on a group of rotations that are kept as matrices: warnings, where they are right along
the group. Near them: gradients that are wrong along it, or that are no vectors of its tangent space
and only look right there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


def rotation_vector(rotation: Tensor) -> Tensor:
    """The logarithm of matrices of shape (..., 3, 3), which reads them beside the group, too."""
    trace = rotation.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
    angle = ((trace - 1.0) / 2.0).clamp(-0.9, 0.9).acos()
    odd = rotation - rotation.mT
    axis = torch.stack((odd[..., 2, 1], odd[..., 0, 2], odd[..., 1, 0]), -1)
    return axis * angle / (2.0 * angle.sin())


def projected(rotation: Tensor, gradient: Tensor) -> Tensor:
    """``gradient`` projected onto the tangent space at ``rotation``."""
    inner = rotation.mT @ gradient
    return rotation @ (inner - inner.mT) / 2.0


def derivative(function: Callable[[Tensor], Tensor], x: Tensor, grad_output: Tensor) -> Tensor:
    return torch.func.vjp(function, x)[1](grad_output)[0]


class Logarithm(Function):
    """The gradient of a small motion."""

    @staticmethod
    def forward(ctx, rotation):
        ctx.save_for_backward(rotation)
        return rotation_vector(rotation)

    @staticmethod
    def backward(ctx, grad_output):
        (rotation,) = ctx.saved_tensors
        return projected(rotation, derivative(rotation_vector, rotation, grad_output))


class Doubled(Logarithm):
    """In the tangent space, and twice too long."""

    @staticmethod
    def backward(ctx, grad_output):
        (rotation,) = ctx.saved_tensors
        return 2.0 * projected(rotation, derivative(rotation_vector, rotation, grad_output))


def moved_point(pose: Tensor) -> Tensor:
    """Where poses of shape (..., 3, 4) take a point."""
    return pose[..., :3] @ pose.new_tensor([0.4, -0.7, 1.1]) + pose[..., 3]


class Pose(Function):
    """A rotation beside a translation."""

    @staticmethod
    def forward(ctx, pose):
        ctx.save_for_backward(pose)
        return moved_point(pose)

    @staticmethod
    def backward(ctx, grad_output):
        (pose,) = ctx.saved_tensors
        gradient = derivative(moved_point, pose, grad_output)
        return torch.cat((projected(pose[..., :3], gradient[..., :3]), gradient[..., 3:]), -1)


class Shifted(Pose):
    """The rotation's part is that of the group; the translation's sign is wrong."""

    @staticmethod
    def backward(ctx, grad_output):
        (pose,) = ctx.saved_tensors
        gradient = derivative(moved_point, pose, grad_output)
        return torch.cat((projected(pose[..., :3], gradient[..., :3]), -gradient[..., 3:]), -1)


class LogDeterminant(Function):
    """Along rotations the determinant is constant, so that no motion shows the factor 3."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.linalg.slogdet(x).logabsdet

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3.0 * grad_output[..., None, None] * torch.linalg.inv(x).mT


def matrices(*shape: int) -> Tensor:
    torch.manual_seed(5)
    return torch.randn(*shape, dtype=torch.float64).requires_grad_()


def rotations(*shape: int) -> Tensor:
    q = torch.linalg.qr(matrices(*shape).detach()).Q
    return (q * torch.linalg.det(q)[..., None, None]).requires_grad_()


@pytest.mark.parametrize(
    ("op", "x", "expected"),
    [
        (Logarithm, matrices(2, 3, 3), "warning"),
        (Logarithm, rotations(2, 3, 3), "warning"),
        (Doubled, matrices(2, 3, 3), "error"),
        (Doubled, rotations(2, 3, 3), "error"),
        (Pose, matrices(2, 3, 4), "warning"),
        (Shifted, matrices(2, 3, 4), "error"),
        (LogDeterminant, matrices(2, 3, 3), "error"),
        (LogDeterminant, rotations(2, 2, 2), "error"),
    ],
)
def test_severity(
    probed: Callable[..., Outcome], op: type[Function], x: Tensor, expected: str
) -> None:
    outcome = as_loud_as_evidence(probed(by_code("GL401"), op, x))
    (finding,) = outcome.findings
    assert finding.severity == expected
    assert ("tangent space of the group" in finding.cause_text) == (expected == "warning")


class Bounded(Function):
    """The hyperbolic tangent."""

    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (1.0 - y * y)


class DoubledBounded(Bounded):
    """Twice too long."""

    @staticmethod
    def backward(ctx, grad_output):
        return 2.0 * Bounded.backward(ctx, grad_output)


@pytest.mark.parametrize(("op", "expected"), [(Bounded, []), (DoubledBounded, ["error"])])
def test_an_infinite_matrix_is_near_no_rotation(
    probed: Callable[..., Outcome], op: type[Function], expected: list[str]
) -> None:
    x = matrices(2, 3, 3).detach()
    x[0, 0, 0], x[1, 2, 1] = float("inf"), float("-inf")
    outcome = as_loud_as_evidence(probed(by_code("GL401"), op, x.requires_grad_()))
    assert [finding.severity for finding in outcome.findings] == expected


def test_what_compiles_is_not_imported_to_look_at_rotations() -> None:
    """It takes as long as importing torch, and matrices of this shape are common."""
    program = """
import sys, torch, gradlint

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return g

x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
report = gradlint.check(Double, [(x,)], order=1, select=("GL401",))
print(report.exit_code, "torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "False"], done.stderr


class AtStride(Function):
    """Windows of three at a stride of two, which leave out the last of eight samples. Its gradient
    is zero, as in a tangent space, and where backward takes no strides, those before it are too."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        ctx.size = x.shape
        return x.unfold(-1, 3, 2) @ weight

    @staticmethod
    def backward(ctx, grad_output):
        (weight,) = ctx.saved_tensors
        found = grad_output.new_zeros(ctx.size)
        for k in range(3):
            found[..., k : k + 3] += grad_output * weight[k]
        return found, None


def test_more_zeros_at_the_end_than_a_motion_has_are_no_sign_of_a_tangent_space(
    probed: Callable[..., Outcome],
) -> None:
    weight = torch.tensor([0.7, -1.1, 1.6], dtype=torch.float64)
    x = matrices(2, 8)
    outcome = as_loud_as_evidence(probed(by_code("GL401"), AtStride, x, weight))
    (finding,) = outcome.findings
    assert (finding.severity, finding.grounds.explained) == ("error", None)


class Exclusive(Function):
    """Sums of the exponentials before each element. The gradient for the last one is always zero
    along the axis that backward takes, whatever ``dim`` is."""

    @staticmethod
    def forward(ctx, x, dim=-1):
        e = x.exp()
        ctx.save_for_backward(e)
        return e.cumsum(dim) - e

    @staticmethod
    def backward(ctx, grad_output):
        (e,) = ctx.saved_tensors
        return e * (grad_output.sum(-1, keepdim=True) - grad_output.cumsum(-1)), None


def test_an_argument_that_is_left_out_is_no_tangent_space(probed: Callable[..., Outcome]) -> None:
    x = matrices(3, 4)
    outcome = as_loud_as_evidence(probed(by_code("GL401"), Exclusive, x, 0))
    (finding,) = outcome.findings
    assert (finding.cause, finding.severity) == ("argument-left-out", "error")
    assert finding.grounds.explained is None
    assert "tangent" not in finding.help
