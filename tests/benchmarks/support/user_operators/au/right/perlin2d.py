import torch
from torch.autograd.function import once_differentiable


def _hash(ix, iy, n):
    return ((ix * 73856093) ^ (iy * 19349663)) % n


class _Perlin(torch.autograd.Function):
    @staticmethod
    def corners(p, n):
        cell = torch.floor(p)
        f = p - cell
        cell = cell.long()
        for cx in (0, 1):
            for cy in (0, 1):
                corner = torch.tensor([cx, cy], device=p.device)
                idx = _hash(cell[:, 0] + cx, cell[:, 1] + cy, n)
                yield cx, cy, idx, f - corner.to(p.dtype)

    @staticmethod
    def forward(ctx, p, table):
        ctx.save_for_backward(p, table)
        f = p - torch.floor(p)
        s = f**3 * (f * (6 * f - 15) + 10)
        out = 0
        for cx, cy, idx, off in _Perlin.corners(p, table.size(0)):
            w = (s[:, 0] if cx else 1 - s[:, 0]) * (s[:, 1] if cy else 1 - s[:, 1])
            out = out + w * (table[idx] * off).sum(1)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        p, table = ctx.saved_tensors
        f = p - torch.floor(p)
        s = f**3 * (f * (6 * f - 15) + 10)
        ds = 30 * f**2 * (1 - f) ** 2
        gp, gt = torch.zeros_like(p), torch.zeros_like(table)
        for cx, cy, idx, off in _Perlin.corners(p, table.size(0)):
            wx, wy = (s[:, 0] if cx else 1 - s[:, 0]), (s[:, 1] if cy else 1 - s[:, 1])
            h = g * (table[idx] * off).sum(1)
            gw = g * wx * wy
            gp[:, 0] += h * wy * ds[:, 0] * (2 * cx - 1)
            gp[:, 1] += h * wx * ds[:, 1] * (2 * cy - 1)
            gp += gw[:, None] * table[idx]
            gt.index_add_(0, idx, gw[:, None] * off)
        return gp, gt


def perlin2d(p, table):
    """Gradient noise. p (N, 2) world position / cell size, table (K, 2) lattice gradients."""
    return _Perlin.apply(p, table)
