import torch
from torch.autograd import Function


class ClaytonLogDensity(Function):
    """log c(u, v; theta) of the Clayton copula, u and v in (0, 1), scalar theta > 0."""

    @staticmethod
    def forward(u, v, theta):
        s = u ** -theta + v ** -theta - 1
        return torch.log1p(theta) - (1 + theta) * (u * v).log() - (2 + 1 / theta) * s.log()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        u, v, theta = ctx.saved_tensors
        s = u ** -theta + v ** -theta - 1
        c = 2 + 1 / theta
        gu = grad * (-(1 + theta) / u + c * theta * u ** (-theta - 1) / s)
        gv = grad * (-(1 + theta) / v + c * theta * v ** (-theta - 1) / s)
        ds = -(u ** -theta * u.log() + v ** -theta * v.log())
        gt = grad * (1 / (1 + theta) - (u * v).log() - c * ds / s)
        return gu, gv, gt.sum().view_as(theta)
