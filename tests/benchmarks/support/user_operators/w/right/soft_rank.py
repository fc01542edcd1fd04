import torch


class SoftRank(torch.autograd.Function):
    """Differentiable ranks of x (N,), 1 is the smallest: r_i = 1/2 + sum_j sigmoid((x_i - x_j) / tau)."""

    @staticmethod
    def forward(ctx, x, tau=1.0):
        ctx.save_for_backward(x)
        ctx.tau = tau
        return 0.5 + torch.sigmoid((x[:, None] - x[None, :]) / tau).sum(1)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        s = torch.sigmoid((x[:, None] - x[None, :]) / ctx.tau)
        D = s * (1 - s) / ctx.tau
        return g * D.sum(1) - D.t() @ g, None
