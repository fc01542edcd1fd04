import math

import torch


class EwaldReal(torch.autograd.Function):
    @staticmethod
    def forward(q, r, pairs, alpha):
        return (q[pairs[0]] * q[pairs[1]] * torch.erfc(alpha * r) / r).sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        q, r, pairs, ctx.alpha = inputs
        ctx.save_for_backward(q, r, pairs)

    @staticmethod
    def backward(ctx, grad):
        q, r, (i, j) = ctx.saved_tensors
        alpha = ctx.alpha
        pot = torch.erfc(alpha * r) / r
        gq = torch.zeros_like(q).index_add(0, i, q[j] * pot).index_add(0, j, q[i] * pot)
        field = pot / r + 2 * alpha / math.sqrt(math.pi) * torch.exp(-((alpha * r) ** 2)) / r
        return grad * gq, -grad * q[i] * q[j] * field, None, None
