import torch
from torch import Tensor


class Siglog(torch.autograd.Function):
    """Georgiou-Koutsougeras activation z / (c + |z| / r), complex z of any shape, positive scalars c and r."""

    @staticmethod
    def forward(ctx, z: Tensor, c: Tensor, r: Tensor) -> Tensor:
        ctx.save_for_backward(z, c, r)
        return z / (c + z.abs() / r)

    @staticmethod
    def backward(ctx, g: Tensor):
        z, c, r = ctx.saved_tensors
        mag = z.abs()
        s = c + mag / r
        ds = -(g.conj() * z).real / (s * s)
        dz = g / s + ds / r * torch.sgn(z)
        return dz, ds.sum(), -(ds * mag).sum() / (r * r)
