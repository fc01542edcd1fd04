import torch
from torch.autograd.function import once_differentiable


class NBodyAcceleration(torch.autograd.Function):
    """Accelerations under softened gravity (Plummer).

    pos (N, 3), mass (N,), eps is the softening length.
    """

    @staticmethod
    def forward(ctx, pos, mass, G=1.0, eps=0.1):
        d = pos.unsqueeze(0) - pos.unsqueeze(1)
        s = d.square().sum(-1) + eps**2
        ctx.save_for_backward(pos, mass)
        ctx.G, ctx.eps = G, eps
        return G * ((mass * s**-1.5).unsqueeze(-1) * d).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        pos, mass = ctx.saved_tensors
        d = pos.unsqueeze(0) - pos.unsqueeze(1)
        s = d.square().sum(-1) + ctx.eps**2
        gd = (grad.unsqueeze(1) * d).sum(-1)
        gmass = gpos = None
        if ctx.needs_input_grad[0]:
            pair = s.pow(-1.5).unsqueeze(-1) * grad.unsqueeze(1) - (3 * gd * s.pow(-2.5)).unsqueeze(-1) * d
            pair = ctx.G * mass[None, :, None] * pair
            gpos = pair.sum(0) - pair.sum(1)
        if ctx.needs_input_grad[1]:
            gmass = ctx.G * (gd * s.pow(-1.5)).sum(0)
        return gpos, gmass, None, None
