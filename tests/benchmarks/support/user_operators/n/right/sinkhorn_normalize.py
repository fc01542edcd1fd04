import torch
from torch.autograd.function import once_differentiable


class SinkhornNormalize(torch.autograd.Function):
    """Log-domain Sinkhorn: alternately normalises rows and columns of exp(scores / tau).

    scores: (B, N, M) -> (B, N, M), columns sum to one exactly, rows about
    """

    @staticmethod
    def forward(ctx, scores, n_iters=5, tau=1.0):
        z = scores / tau
        steps = []
        for _ in range(n_iters):
            for dim in (-1, -2):
                z = z - torch.logsumexp(z, dim=dim, keepdim=True)
                steps.append(z)
        p = z.exp()
        ctx.save_for_backward(p, *steps)
        ctx.tau = tau
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_p):
        p, *steps = ctx.saved_tensors
        g = grad_p * p
        dims = [-1, -2] * (len(steps) // 2)
        for z, dim in zip(reversed(steps), reversed(dims)):
            g = g - z.exp() * g.sum(dim, keepdim=True)
        return g / ctx.tau, None, None
