import math

import torch


class ExpectedShortfall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, returns, level=0.05):
        k = math.ceil(level * returns.shape[0])
        worst, idx = returns.topk(k, dim=0, largest=False)
        ctx.k = k
        ctx.save_for_backward(returns)
        return -worst.mean(0)

    @staticmethod
    def backward(ctx, grad):
        (returns,) = ctx.saved_tensors
        var = returns.kthvalue(ctx.k, dim=0).values
        tail = (returns <= var).to(grad.dtype)
        return -grad * tail / ctx.k, None
