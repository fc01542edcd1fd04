import torch
from torch.autograd import Function


class AnovaKernel(Function):
    """Interactions of a higher-order factorization machine, from power sums.

    factors: (batch, fields, dim); order: 2 or 3. Returns (batch, dim).
    """

    @staticmethod
    def forward(ctx, factors, order=2):
        if order not in (2, 3):
            raise ValueError(f"order must be 2 or 3, not {order}")
        ctx.save_for_backward(factors)
        ctx.order = order
        p1, p2 = factors.sum(1), factors.pow(2).sum(1)
        if order == 2:
            return (p1**2 - p2) / 2
        return (p1**3 - 3 * p1 * p2 + 2 * factors.pow(3).sum(1)) / 6

    @staticmethod
    def backward(ctx, grad_out):
        (factors,) = ctx.saved_tensors
        p1 = factors.sum(1, keepdim=True)
        others = p1 - factors
        if ctx.order == 2:
            slope = others
        else:
            p2 = factors.pow(2).sum(1, keepdim=True)
            slope = (p1**2 - p2) / 2 - factors * others
        return grad_out[:, None] * slope, None
