import torch
from torch import nn


class _Retention(torch.autograd.Function):
    @staticmethod
    def saturation(h, alpha, n):
        dry = h < 0
        psi = torch.where(dry, -h, 1)
        u = (alpha * psi) ** n
        m = 1 - 1 / n
        return dry, psi, u, m, torch.where(dry, (1 + u) ** -m, 1)

    @staticmethod
    def forward(ctx, h, alpha, n, theta_r, theta_s):
        ctx.save_for_backward(h, alpha, n, theta_r, theta_s)
        se = _Retention.saturation(h, alpha, n)[-1]
        return theta_r + (theta_s - theta_r) * se

    @staticmethod
    def backward(ctx, g):
        h, alpha, n, theta_r, theta_s = ctx.saved_tensors
        dry, psi, u, m, se = _Retention.saturation(h, alpha, n)
        gse = g * (theta_s - theta_r) * dry * se
        q = m * u / (1 + u)
        gh = gse * q * n / psi
        g_alpha = -(gse * q * n / alpha).sum()
        g_n = -(gse * (torch.log1p(u) / n ** 2 + q * torch.log(alpha * psi))).sum()
        return gh, g_alpha, g_n, (g * (1 - se)).sum(), (g * dry * se).sum()


class VanGenuchten(nn.Module):
    """Soil water content from the pressure head h (any shape), saturated for h >= 0."""

    def __init__(self, alpha=0.8, n=1.6, theta_r=0.08, theta_s=0.43):
        super().__init__()
        value = lambda v: nn.Parameter(torch.tensor(float(v)))
        self.log_alpha = value(torch.tensor(alpha).log())
        self.log_n1 = value(torch.tensor(n - 1).log())
        self.theta_r, self.theta_s = value(theta_r), value(theta_s)

    def forward(self, h):
        return _Retention.apply(h, self.log_alpha.exp(), 1 + self.log_n1.exp(), self.theta_r, self.theta_s)
