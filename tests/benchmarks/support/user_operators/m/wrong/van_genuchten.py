import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _Retention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, head, theta_r, theta_s, alpha, n):
        x = alpha * head.clamp(min=0)
        base = 1 + x**n
        se = base ** (1 / n - 1)
        ctx.save_for_backward(head, x, base, se, theta_r, theta_s, alpha, n)
        return theta_r + (theta_s - theta_r) * se

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_theta):
        head, x, base, se, theta_r, theta_s, alpha, n = ctx.saved_tensors
        m = 1 - 1 / n
        g_se = grad_theta * (theta_s - theta_r)
        d_x = -m * n * x ** (n - 1) * se / base
        d_n = -se * m * torch.special.xlogy(base - 1, x) / base
        g_head = g_se * d_x * alpha * (head > 0)
        g_alpha = (g_se * d_x * head.clamp(min=0)).sum()
        g_n = (g_se * d_n).sum()
        g_r = (grad_theta * (1 - se)).sum()
        g_s = (grad_theta * se).sum()
        return g_head, g_r, g_s, g_alpha, g_n


class VanGenuchten(nn.Module):
    """Soil water retention curve (van Genuchten 1980) with m = 1 - 1/n.

    Parameters are scalars: residual and saturated water content, ``alpha``
    (1/m) and ``n > 1``. ``forward`` takes the suction head in m, any shape;
    heads of zero or below are saturated.
    """

    def __init__(self, theta_r=0.05, theta_s=0.43, alpha=3.6, n=1.56):
        super().__init__()
        self.theta_r = nn.Parameter(torch.tensor(theta_r))
        self.theta_s = nn.Parameter(torch.tensor(theta_s))
        self.alpha = nn.Parameter(torch.tensor(alpha))
        self.n = nn.Parameter(torch.tensor(n))

    def forward(self, head):
        return _Retention.apply(head, self.theta_r, self.theta_s, self.alpha, self.n)
