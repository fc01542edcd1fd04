import torch


class CosineSim(torch.autograd.Function):
    """Cosine similarity of two tensors of one shape along ``dim``."""

    @staticmethod
    def forward(ctx, a, b, dim):
        ctx.dim = dim
        ctx.save_for_backward(a, b)
        return (a * b).sum(dim) / (a.norm(dim=dim) * b.norm(dim=dim))

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        d = ctx.dim
        na = a.norm(dim=d, keepdim=True)
        nb = b.norm(dim=d, keepdim=True)
        ua, ub = a / na, b / nb
        c = (ua * ub).sum(d, keepdim=True)
        g = g.unsqueeze(d)
        return g * (ub - c * ua) / na, g * (ua - c * ub) / nb, None
