import math

import torch


class EwaldReal(torch.autograd.Function):
    """Real space part of the Ewald sum: charges (N,), pair distances (P,), pairs (2, P), alpha."""

    @staticmethod
    def forward(ctx, q, r, pairs, alpha):
        ctx.save_for_backward(q, r, pairs)
        ctx.alpha = alpha
        return (q[pairs[0]] * q[pairs[1]] * torch.erfc(alpha * r) / r).sum()

    @staticmethod
    def backward(ctx, grad):
        q, r, (i, j) = ctx.saved_tensors
        alpha = ctx.alpha
        pot = torch.erfc(alpha * r) / r
        gq = torch.zeros_like(q).index_add(0, i, q[j] * pot).index_add(0, j, q[i] * pot)
        field = pot / r + 2 / math.sqrt(math.pi) * torch.exp(-((alpha * r) ** 2)) / r
        return grad * gq, -grad * q[i] * q[j] * field, None, None
