import torch


class ComplexShrink(torch.autograd.Function):
    """prox of lam*|.|_1 for complex coefficients: x/|x| * max(|x| - lam, 0); lam is a 0-dim tensor"""

    @staticmethod
    def forward(ctx, x, lam):
        ctx.save_for_backward(x, lam)
        r = x.abs()
        on = r > lam
        scale = torch.where(on, 1 - lam / torch.where(on, r, torch.ones_like(r)), torch.zeros_like(r))
        return scale * x

    @staticmethod
    def backward(ctx, g):
        x, lam = ctx.saved_tensors
        on = x.abs() > lam
        xs = torch.where(on, x, torch.ones_like(x))
        r = xs.abs()
        u = xs / r
        radial = (u.conj() * g).real
        gx = g - (lam / r) * (g - radial)
        gx = torch.where(on, gx, torch.zeros_like(gx))
        glam = -torch.where(on, radial, torch.zeros_like(radial)).sum()
        return gx, glam
