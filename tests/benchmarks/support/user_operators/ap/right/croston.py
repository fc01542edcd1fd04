import torch
from torch.autograd.function import once_differentiable


class Croston(torch.autograd.Function):
    """Croston's intermittent demand forecast; sba=True for the Syntetos-Boylan correction.

    x: (B, T) >= 0, alpha: () in (0, 1), z0: (B,) initial size, p0: (B,) initial interval > 0.
    Returns the forecast made after each step, (B, T).
    """

    @staticmethod
    def forward(ctx, x, alpha, z0, p0, sba=False):
        z, p, q = z0, p0, torch.ones_like(z0)
        zs, ps, qs = [z], [p], []
        for t in range(x.shape[1]):
            hit = x[:, t] > 0
            qs.append(q)
            z = torch.where(hit, alpha * x[:, t] + (1 - alpha) * z, z)
            p = torch.where(hit, alpha * q + (1 - alpha) * p, p)
            q = torch.where(hit, torch.ones_like(q), q + 1)
            zs.append(z)
            ps.append(p)
        zs, ps, qs = torch.stack(zs, 1), torch.stack(ps, 1), torch.stack(qs, 1)
        ctx.save_for_backward(x, alpha, zs, ps, qs)
        ctx.sba = sba
        f = zs[:, 1:] / ps[:, 1:]
        return f * (1 - alpha / 2) if sba else f

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, alpha, zs, ps, qs = ctx.saved_tensors
        ga = torch.zeros_like(alpha)
        if ctx.sba:
            ga = ga - (g * zs[:, 1:] / ps[:, 1:]).sum() / 2
            g = g * (1 - alpha / 2)
        gx = torch.zeros_like(x)
        lz = torch.zeros_like(zs[:, 0])
        lp = torch.zeros_like(lz)
        for t in reversed(range(x.shape[1])):
            hit = (x[:, t] > 0).to(x.dtype)
            lz = lz + g[:, t] / ps[:, t + 1]
            lp = lp - g[:, t] * zs[:, t + 1] / ps[:, t + 1] ** 2
            gx[:, t] = hit * alpha * lz
            ga = ga + (hit * (lz * (x[:, t] - zs[:, t]) + lp * (qs[:, t] - ps[:, t]))).sum()
            lz = lz * (1 - hit * alpha)
            lp = lp * (1 - hit * alpha)
        return gx, ga, lz, lp, None
