import torch
from torch.autograd import Function


class _F81(Function):
    @staticmethod
    def parts(pi, dist):
        beta = 1 / (1 - (pi * pi).sum())
        decay = torch.exp(-beta * dist)[:, None, None]
        eye = torch.eye(4, dtype=pi.dtype, device=pi.device)
        return beta, decay, eye, decay * eye + (1 - decay) * pi

    @staticmethod
    def forward(ctx, pi, dist, counts):
        ctx.save_for_backward(pi, dist, counts)
        _, _, _, P = _F81.parts(pi, dist)
        return (counts * (torch.log(pi)[:, None] + torch.log(P))).sum((1, 2))

    @staticmethod
    def backward(ctx, g):
        pi, dist, counts = ctx.saved_tensors
        beta, decay, eye, P = _F81.parts(pi, dist)
        gc = g[:, None, None] * counts
        a = gc / P
        g_decay = (a * (eye - pi)).sum((1, 2)) * decay[:, 0, 0]
        g_pi = gc.sum((0, 2)) / pi + (a * (1 - decay)).sum((0, 1))
        return g_pi, -beta * g_decay, None


def f81_loglik(pi, dist, counts):
    """Log-likelihood of sequence pairs under F81.

    pi (4,) base frequencies, dist (P,) substitutions per site > 0, counts (P, 4, 4) integer site patterns -> (P,)
    """
    return _F81.apply(pi, dist, counts)
