import torch


class UpwindStep(torch.autograd.Function):
    # u (B, N) periodic cells, c (N,) speed at the right face of each cell, lam = dt / dx

    @staticmethod
    def forward(ctx, u, c, lam):
        ctx.save_for_backward(u, c)
        ctx.lam = lam
        flux = c.clamp(min=0) * u + c.clamp(max=0) * u.roll(-1, 1)
        return u - lam * (flux - flux.roll(1, 1))

    @staticmethod
    def backward(ctx, g):
        u, c = ctx.saved_tensors
        gf = ctx.lam * (g.roll(-1, 1) - g)
        gu = g + c.clamp(min=0) * gf + (c.clamp(max=0) * gf).roll(1, 1)
        gc = (gf * torch.where(c > 0, u, u.roll(-1, 1))).sum(0)
        return gu, gc, None
