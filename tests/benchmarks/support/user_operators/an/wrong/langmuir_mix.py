import torch


class CompetitiveLangmuir(torch.autograd.Function):
    """Loading of each species on a shared site.

    p (N, S) partial pressures, b (S,) affinities, qmax (S,) capacities -> (N, S)
    """

    @staticmethod
    def forward(ctx, p, b, qmax):
        ctx.save_for_backward(p, b, qmax)
        bp = b * p
        return qmax * bp / (1 + bp.sum(-1, keepdim=True))

    @staticmethod
    def backward(ctx, grad):
        p, b, qmax = ctx.saved_tensors
        bp = b * p
        denom = 1 + bp.sum(-1, keepdim=True)
        theta = bp / denom
        gq = grad * qmax
        shared = gq * theta
        g_bp = (gq - shared) / denom
        return g_bp * b, (g_bp * p).sum(0), (grad * theta).sum(0)
