import torch
from torch import nn


class SphereStep(torch.autograd.Function):

    @staticmethod
    def forward(ctx, h, a, alpha):
        ctx.save_for_backward(h, a, alpha)
        na = a / a.norm(dim=-1, keepdim=True)
        v = h + alpha * (na - h)
        return v / v.norm(dim=-1, keepdim=True)

    @staticmethod
    def backward(ctx, grad):
        h, a, alpha = ctx.saved_tensors
        shape = h.shape
        D = shape[-1]
        g, h, a = grad.reshape(-1, D), h.reshape(-1, D), a.reshape(-1, D)
        an = a.norm(dim=-1, keepdim=True)
        na = a / an
        v = h + alpha * (na - h)
        vn = v.norm(dim=-1, keepdim=True)
        y = v / vn
        gv = (g - y * (y * g).sum(-1, keepdim=True)) / vn
        gna = alpha * gv
        ga = (gna - na * (na * gna).sum(-1, keepdim=True)) / an
        return (gv - gna).reshape(shape), ga.reshape(shape), (gv * (na - h)).sum(0)


class NGPTResidual(nn.Module):
    """Normalized residual update of nGPT. h, a: (..., dim); h lies on the unit sphere."""

    def __init__(self, dim, alpha=0.05):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((dim,), alpha))

    def forward(self, h, a):
        return SphereStep.apply(h, a, self.alpha)
