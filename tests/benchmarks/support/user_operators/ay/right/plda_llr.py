import torch
from torch import nn


class _PLDA(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, psi):
        ctx.save_for_backward(x, y, psi)
        a = 1 / (1 + psi) - (1 + psi) / (1 + 2 * psi)
        b = psi / (1 + 2 * psi)
        const = (torch.log1p(psi) - 0.5 * torch.log1p(2 * psi)).sum()
        return const + 0.5 * ((x * x) @ a)[:, None] + 0.5 * ((y * y) @ a)[None] + (x * b) @ y.T

    @staticmethod
    def backward(ctx, g):
        x, y, psi = ctx.saved_tensors
        a = 1 / (1 + psi) - (1 + psi) / (1 + 2 * psi)
        b = psi / (1 + 2 * psi)
        rows, cols = g.sum(1), g.sum(0)
        gx = a * x * rows[:, None] + b * (g @ y)
        gy = a * y * cols[:, None] + b * (g.T @ x)
        db = 1 / (1 + 2 * psi) ** 2
        da = db - 1 / (1 + psi) ** 2
        gpsi = g.sum() * (1 / (1 + psi) - 1 / (1 + 2 * psi))
        gpsi = gpsi + 0.5 * da * (rows @ (x * x) + cols @ (y * y))
        gpsi = gpsi + db * (x * (g @ y)).sum(0)
        return gx, gy, gpsi


class PLDAScorer(nn.Module):
    """All-pairs PLDA log likelihood ratio in the space where within-class covariance is I.

    Args (forward):
        enroll: (N, D)
        test: (M, D)
    Returns:
        (N, M) scores
    """

    def __init__(self, dim):
        super().__init__()
        self.psi = nn.Parameter(torch.ones(dim))  # between-class variances

    def forward(self, enroll, test):
        return _PLDA.apply(enroll, test, self.psi)
