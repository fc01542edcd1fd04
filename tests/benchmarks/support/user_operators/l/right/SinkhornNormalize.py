import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SinkhornNormalize(Function):
    """Log-domain Sinkhorn iterations: alternate row and column normalisation.

    logits: (..., N, M) scores; returns log of the scaled matrix, same shape.
    Every iteration normalises the rows (axis -1), then the columns (axis -2).
    """

    @staticmethod
    def forward(ctx, logits, n_iters=5, tau=1.0):
        z = logits / tau
        stages = []
        for _ in range(n_iters):
            for dim in (-1, -2):
                z = z - torch.logsumexp(z, dim=dim, keepdim=True)
                stages.append(z)
        ctx.save_for_backward(*stages)
        ctx.tau = tau
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        stages = ctx.saved_tensors
        for step in range(len(stages) - 1, -1, -1):
            dim = -1 if step % 2 == 0 else -2
            softmax = stages[step].exp()
            grad = grad - softmax * grad.sum(dim=dim, keepdim=True)
        return grad / ctx.tau, None, None


def gumbel_sinkhorn(logits, tau=1.0, n_iters=20, noise=1.0):
    u = torch.rand_like(logits).clamp(1e-9, 1 - 1e-9)
    g = -torch.log(-torch.log(u))
    return SinkhornNormalize.apply(logits + noise * g, n_iters, tau).exp()


if __name__ == "__main__":
    p = gumbel_sinkhorn(torch.randn(2, 4, 4))
    print(p.sum(-1), p.sum(-2))
