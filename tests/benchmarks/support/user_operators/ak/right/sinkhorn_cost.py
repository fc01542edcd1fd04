import torch
from torch.autograd.function import once_differentiable


class SinkhornCost(torch.autograd.Function):
    """Entropic transport cost, one number per problem.

    cost: (B, N, M); uniform marginals. Runs to convergence, so that the envelope theorem gives the
    gradient: the plan itself.
    """

    @staticmethod
    def forward(ctx, cost, eps=0.5, iters=300):
        b, n, m = cost.shape
        f, h = cost.new_zeros(b, n), cost.new_zeros(b, m)
        la, lb = -torch.tensor(float(n)).log().item(), -torch.tensor(float(m)).log().item()
        for _ in range(iters):
            f = -eps * torch.logsumexp((h[:, None, :] - cost) / eps + lb, -1)
            h = -eps * torch.logsumexp((f[:, :, None] - cost) / eps + la, -2)
        ctx.plan = ((f[:, :, None] + h[:, None, :] - cost) / eps + la + lb).exp()
        return f.mean(-1) + h.mean(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return ctx.plan * g[:, None, None], None, None
