import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


def thomas(lower, diag, upper, rhs):
    # lower[i] couples i+1 to i, rhs (B, N)
    n = diag.shape[0]
    c, d = [], []
    for i in range(n):
        den = diag[i] - (lower[i - 1] * c[i - 1] if i else 0)
        c.append(upper[i] / den if i < n - 1 else None)
        d.append((rhs[:, i] - (lower[i - 1] * d[i - 1] if i else 0)) / den)
    x = [d[-1]]
    for i in range(n - 2, -1, -1):
        x.append(d[i] - c[i] * x[-1])
    return torch.stack(x[::-1], 1)


def solve(k, dt, rhs):
    diag = torch.ones(k.shape[0] + 1, dtype=k.dtype, device=k.device)
    diag[:-1] += dt * k
    diag[1:] += dt * k
    return thomas(-dt * k, diag, -dt * k, rhs)


class ImplicitStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, log_k, dt):
        k = log_k.exp()
        out = solve(k, dt, u)
        ctx.save_for_backward(k, u, out)
        ctx.dt = dt
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        k, u, out = ctx.saved_tensors
        lam = solve(k, ctx.dt, g)
        gk = -ctx.dt * (lam.diff(dim=1) * u.diff(dim=1)).sum(0)
        return lam, gk * k, None


class ImplicitDiffusion(nn.Module):
    """Backward Euler for u_t = (k u_x)_x on n cells with closed ends; learns log k at the n - 1 faces."""

    def __init__(self, n, dt=0.1, steps=1):
        super().__init__()
        self.log_k = nn.Parameter(torch.zeros(n - 1))
        self.dt, self.steps = dt, steps

    def forward(self, u, source=None):
        for _ in range(self.steps):
            if source is not None:
                u = u + self.dt * source
            u = ImplicitStep.apply(u, self.log_k, self.dt)
        return u
