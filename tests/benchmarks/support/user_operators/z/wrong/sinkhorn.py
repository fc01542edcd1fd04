from functools import lru_cache

import torch
from torch.autograd.function import once_differentiable


@lru_cache(maxsize=None)
def _tape(length, shape, dtype):
    """room for the log-scores after every half step"""
    return torch.empty(length, *shape, dtype=dtype)


class SinkhornLog(torch.autograd.Function):
    """scores (B, n, m) / tau, rows and columns normalised in turn in the log domain; returns the plan."""

    @staticmethod
    def forward(ctx, scores, tau=1.0, n_iters=5):
        x = scores / tau
        tape = _tape(2 * n_iters, x.shape, x.dtype)
        for k in range(2 * n_iters):
            dim = 2 - k % 2
            x = x - torch.logsumexp(x, dim, keepdim=True)
            tape[k] = x
        plan = x.exp()
        ctx.save_for_backward(plan)
        ctx.tape, ctx.tau = tape, tau
        return plan

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (plan,) = ctx.saved_tensors
        tape = ctx.tape
        g = g * plan
        for k in range(len(tape) - 1, -1, -1):
            dim = 2 - k % 2
            g = g - tape[k].exp() * g.sum(dim, keepdim=True)
        return g / ctx.tau, None, None
