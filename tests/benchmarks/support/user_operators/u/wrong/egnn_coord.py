import torch
from torch import nn


class _Move(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, phi, row, col, eps):
        d = x[row] - x[col]
        r = d.pow(2).sum(-1, keepdim=True).add(eps).sqrt()
        deg = torch.zeros(x.shape[0], 1, dtype=x.dtype, device=x.device)
        deg = deg.index_add(0, row, torch.ones_like(r)).clamp(min=1)
        ctx.save_for_backward(x, phi, row, col, deg)
        ctx.eps = eps
        return x + torch.zeros_like(x).index_add(0, row, phi * d / r) / deg

    @staticmethod
    def backward(ctx, g):
        x, phi, row, col, deg = ctx.saved_tensors
        d = x[row] - x[col]
        r = d.pow(2).sum(-1, keepdim=True).add(ctx.eps).sqrt()
        gm = (g / deg)[row]
        along = (gm * d).sum(-1, keepdim=True)
        g_phi = along / r
        gd = phi * (gm / r - along * d / r**3)
        gx = g.index_add(0, row, gd)
        gx = gx.index_put((col,), gx[col] - gd)
        return gx, g_phi, None, None, None


class EGNNCoordUpdate(nn.Module):
    """x_i + mean_j phi(m_ij) (x_i - x_j) / |x_i - x_j|, edges as (2, E)."""

    def __init__(self, dim, eps=1e-8):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1, bias=False))
        self.eps = eps

    def forward(self, x, edge_index, m):
        return _Move.apply(x, self.phi(m), edge_index[0], edge_index[1], self.eps)
