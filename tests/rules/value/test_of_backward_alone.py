"""Gradients that change while forward stays the same, and gradients in tangent spaces: warnings.
Near them: the same faults where forward does use what backward reads, which stay errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


class AveragedLog(Function):
    """Backward divides by an average that forward does not use."""

    @staticmethod
    def forward(ctx, x, average):
        ctx.save_for_backward(average)
        return x.log()

    @staticmethod
    def backward(ctx, grad_output):
        (average,) = ctx.saved_tensors
        return grad_output / average, None


class Reversed(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.strength * grad_output, None


class Squared(Function):
    """Backward uses the weight once too often; forward uses it as well."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (x * weight).sin()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * (x * weight).cos() * weight.square(), None


class Stabilised(Function):
    """Backward alone has an epsilon, and forgets a factor besides."""

    @staticmethod
    def forward(ctx, x, eps):
        ctx.save_for_backward(x)
        ctx.eps = eps
        return x.square() / (1.0 + x.square())

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x / (1.0 + x.square() + ctx.eps), None


class Drawn(Function):
    """One draw in place of the softmax."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.logsumexp(-1)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        drawn = torch.multinomial(x.softmax(-1), 1)[:, 0]
        return grad_output[:, None] * torch.nn.functional.one_hot(drawn, x.shape[-1]).to(x)


class Rotated(Function):
    """A point turned by a quaternion; the gradient of the quaternion is that of a small motion."""

    @staticmethod
    def forward(ctx, q, p):
        v, w = q[..., :3], q[..., 3:]
        twice = 2.0 * torch.linalg.cross(v, p, dim=-1)
        out = p + w * twice + torch.linalg.cross(v, twice, dim=-1)
        ctx.save_for_backward(q, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        q, out = ctx.saved_tensors
        v, w = -q[..., :3], q[..., 3:]
        twice = 2.0 * torch.linalg.cross(v, grad_output, dim=-1)
        back = grad_output + w * twice + torch.linalg.cross(v, twice, dim=-1)
        motion = torch.linalg.cross(out, grad_output, dim=-1)
        return torch.cat((motion, torch.zeros_like(w)), -1), back


class Lagged(Function):
    """The correlation with the next sample, which the last one of x does not have."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x[..., :-1] * y[..., 1:]).mean(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        share = grad_output[..., None] / x.shape[-1]
        pad = torch.nn.functional.pad
        return pad(share * y[..., 1:], (0, 1)), pad(share * x[..., :-1], (1, 0))


class Exponential(Function):
    """The quaternion of a rotation vector; the gradient that comes in is that of a small motion."""

    @staticmethod
    def forward(ctx, x):
        angle = x.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(x)
        return torch.cat((x * (0.5 * angle).sin() / angle, (0.5 * angle).cos()), -1)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        angle = x.norm(dim=-1, keepdim=True)
        g = grad_output[..., :3]
        first = (1.0 - angle.cos()) / angle.square()
        second = (angle - angle.sin()) / angle**3
        turned = torch.linalg.cross(g, x, dim=-1)
        return g + first * turned + second * torch.linalg.cross(turned, x, dim=-1)


def turned(q: Tensor, a: Tensor) -> Tensor:
    """``a`` of shape (..., 3), turned by quaternions."""
    v, w = q[..., :3], q[..., 3:]
    twice = 2.0 * torch.linalg.cross(v, a, dim=-1)
    return a + w * twice + torch.linalg.cross(v, twice, dim=-1)


class Similar(Function):
    """A motion with a scale, moved to another frame by a rotation with a scale. No change of scale
    changes it, so that two components of the gradient are zero."""

    @staticmethod
    def forward(ctx, q, a):
        out = torch.cat((turned(q[..., :4], a[..., :3]), a[..., 3:]), -1)
        ctx.save_for_backward(q, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        q, out = ctx.saved_tensors
        back = torch.cat((-q[..., :3], q[..., 3:4]), -1)
        moved = torch.cat((turned(back, grad_output[..., :3]), grad_output[..., 3:]), -1)
        motion = torch.linalg.cross(out[..., :3], grad_output[..., :3], dim=-1)
        return torch.cat((motion, torch.zeros_like(q[..., 3:])), -1), moved


class Cut(Function):
    """A block of three is written, and the two components behind it are left out."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = grad_output * x.cos()
        grad[..., 3:] = 0.0
        return grad


class Forgotten(Function):
    """The gradient of the last component is left out; all others are right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = grad_output * x.cos()
        grad[..., -1] = 0.0
        return grad


class Halved(Function):
    """Wrong everywhere, and zero nowhere."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin() * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


def positive(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64).add(0.5).requires_grad_()


def unit(*shape: int) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(*shape, dtype=torch.float64), dim=-1)


def scaled(number: int) -> Tensor:
    return torch.cat((unit(number, 4), torch.rand(number, 1, dtype=torch.float64) + 0.5), -1)


@pytest.mark.parametrize(
    ("op", "make", "expected"),
    [
        (AveragedLog, lambda: (positive(3, 4), positive(3, 4).detach()), {"x": "warning"}),
        (Reversed, lambda: (positive(3, 4), 0.7), {"x": "warning"}),
        (Drawn, lambda: (positive(3, 4),), {"x": "warning"}),
        (Rotated, lambda: (unit(5, 4), unit(5, 3)), {"q": "warning"}),
        (Exponential, lambda: (positive(5, 3),), {"x": "warning"}),
        (Rotated, lambda: (unit(40, 30, 4), unit(40, 30, 3)), {"q": "warning"}),
        (Similar, lambda: (scaled(5), unit(5, 4)), {"q": "warning"}),
        (Lagged, lambda: (positive(3, 4), positive(3, 4)), {"x": "error", "y": "error"}),
        (Cut, lambda: (positive(4, 5),), {"x": "error"}),
        (Forgotten, lambda: (positive(40, 30, 4),), {"x": "error"}),
        (Squared, lambda: (positive(3, 4), positive(3, 4).detach()), {"x": "error"}),
        (Stabilised, lambda: (positive(3, 4), 1e-6), {"x": "error"}),
        (Forgotten, lambda: (positive(3, 4),), {"x": "error"}),
        (Halved, lambda: (positive(3, 4),), {"x": "error"}),
    ],
)
def test_severity(
    probed: Callable[..., Outcome],
    op: type[Function],
    make: Callable[[], tuple[object, ...]],
    expected: dict[str, str],
) -> None:
    torch.manual_seed(5)
    outcome = as_loud_as_evidence(probed(by_code("GL401"), op, *make()))
    assert {item.input: item.severity for item in outcome.findings} == expected


def test_the_argument_is_named(probed: Callable[..., Outcome]) -> None:
    torch.manual_seed(5)
    outcome = probed(by_code("GL401"), AveragedLog, positive(3, 4), positive(3, 4).detach())
    (finding,) = outcome.findings
    assert "`average`, which forward does not use" in finding.help


@pytest.mark.parametrize(("op", "expected"), [(Drawn, "warning"), (Halved, "error")])
def test_one_draw_is_no_derivative_where_an_option_was_moved_either(
    subject: Callable[..., Subject], op: type[Function], expected: str
) -> None:
    torch.manual_seed(5)
    bound = subject(op, positive(3, 4))
    bound.sample = replace(bound.sample, moved=("dim",))
    rule = by_code("GL401")
    assert rule is not None
    assert rule.probe is not None
    (finding,) = as_loud_as_evidence(rule.probe(bound)).findings
    assert finding.severity == expected


def test_it_is_advised_once_to_declare_it(probed: Callable[..., Outcome]) -> None:
    torch.manual_seed(5)
    (finding,) = probed(by_code("GL401"), Reversed, positive(3, 4), 0.7).findings
    assert finding.help.count("declare it") == 1
    assert finding.help.count("otherwise") == 1
    assert "`strength`, which forward does not use" in finding.help
