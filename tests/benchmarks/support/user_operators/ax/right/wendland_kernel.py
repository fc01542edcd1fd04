import torch
from torch.autograd import Function


class WendlandKernel(Function):
    r"""Compactly supported Wendland C2 kernel, :math:`(1-r)_+^4 (4r+1)` with :math:`r = |x-y| / R`.

    Args:
        x1 (Tensor): ``(..., n, d)``.
        x2 (Tensor): ``(..., m, d)``, same batch shape as x1.
        support (Tensor): the radius R, positive, 0-dim.

    Returns:
        Tensor: ``(..., n, m)``.
    """

    @staticmethod
    def forward(ctx, x1, x2, support):
        ctx.save_for_backward(x1, x2, support)
        r = torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), dim=-1) / support
        return (1 - r).clamp(min=0) ** 4 * (4 * r + 1)

    @staticmethod
    def backward(ctx, grad):
        x1, x2, support = ctx.saved_tensors
        diff = x1.unsqueeze(-2) - x2.unsqueeze(-3)
        dist = torch.linalg.vector_norm(diff, dim=-1)
        r = dist / support
        coef = -20 * grad * (1 - r).clamp(min=0) ** 3
        gx = (coef / support**2).unsqueeze(-1) * diff
        g_support = -(coef * r**2).sum() / support
        return gx.sum(-2), -gx.sum(-3), g_support
