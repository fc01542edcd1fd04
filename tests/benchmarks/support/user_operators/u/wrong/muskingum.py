import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Route(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inflow, K, X, dt):
        den = 2 * K * (1 - X) + dt
        c0, c1, c2 = (dt - 2 * K * X) / den, (dt + 2 * K * X) / den, (2 * K * (1 - X) - dt) / den
        q = torch.empty_like(inflow)
        q[..., 0] = inflow[..., 0]
        for t in range(1, inflow.shape[-1]):
            q[..., t] = c0 * inflow[..., t] + c1 * inflow[..., t - 1] + c2 * q[..., t - 1]
        ctx.save_for_backward(inflow, K, X, q)
        ctx.dt = dt
        return q

    @staticmethod
    @once_differentiable
    def backward(ctx, gq):
        inflow, K, X, q = ctx.saved_tensors
        dt = ctx.dt
        den = 2 * K * (1 - X) + dt
        c0, c1, c2 = (dt - 2 * K * X) / den, (dt + 2 * K * X) / den, (2 * K * (1 - X) - dt) / den
        gi = torch.zeros_like(inflow)
        d0 = d1 = d2 = 0.0
        lam = gq[..., -1]
        for t in range(inflow.shape[-1] - 1, 0, -1):
            gi[..., t] += c0 * lam
            gi[..., t - 1] += c1 * lam
            d0 = d0 + (lam * inflow[..., t]).sum()
            d1 = d1 + (lam * inflow[..., t - 1]).sum()
            d2 = d2 + (lam * q[..., t - 1]).sum()
            lam = gq[..., t - 1] + c2 * lam
        # c = num / den
        gden = -(d0 * c0 + d1 * c1 + d2 * c2) / den
        gK = (-2 * X * d0 + 2 * X * d1 + 2 * (1 - X) * d2) / den + 2 * (1 - X) * gden
        gX = 2 * K * (d1 - d0 - d2) / den - 2 * K * gden
        return gi, gK, gX, None


class MuskingumReach(nn.Module):
    """Muskingum routing of a hydrograph (..., T) through one reach; starts in steady state."""

    def __init__(self, K=2.0, X=0.2, dt=1.0):
        super().__init__()
        self.K = nn.Parameter(torch.tensor(K))
        self.X = nn.Parameter(torch.tensor(X))
        self.dt = dt

    def forward(self, inflow):
        return _Route.apply(inflow, self.K, self.X, self.dt)
