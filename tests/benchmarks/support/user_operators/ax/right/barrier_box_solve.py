import torch
from torch.autograd import Function


class _BarrierBox(Function):

    @staticmethod
    def forward(ctx, cost, lower, upper, mu):
        half = (upper - lower) / 2
        z = cost * half**2 / (mu + torch.sqrt(mu**2 + (cost * half) ** 2))
        x = (upper + lower) / 2 - z
        ctx.save_for_backward(cost, lower, upper, mu, x)
        return x

    @staticmethod
    def backward(ctx, grad):
        cost, lower, upper, mu, x = ctx.saved_tensors
        lo, hi = x - lower, upper - x
        # implicit function theorem on cost - mu / lo + mu / hi = 0
        q = grad / (mu / lo**2 + mu / hi**2)
        g_cost = -q
        g_lower = q * mu / lo**2
        g_upper = q * mu / hi**2
        g_mu = q * (1 / lo - 1 / hi)
        return (
            g_cost.sum_to_size(cost.shape),
            g_lower.sum_to_size(lower.shape),
            g_upper.sum_to_size(upper.shape),
            g_mu.sum_to_size(mu.shape),
        )


def barrier_box_solve(cost, lower, upper, mu):
    """Analytic centre of a box, tilted by a linear cost.

    Solves ``min_x  cost @ x - mu * sum(log(x - lower) + log(upper - x))``.

    Parameters
    ----------
    cost : Tensor, shape (..., n)
    lower, upper : Tensor, broadcastable with cost
        Bounds, ``lower < upper``.
    mu : Tensor, broadcastable with cost
        Barrier weight, positive.

    Returns
    -------
    Tensor, shape (..., n)
        The minimiser, strictly inside the box.
    """
    return _BarrierBox.apply(cost, lower, upper, mu)
