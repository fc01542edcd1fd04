import math

import torch


class BachelierCall(torch.autograd.Function):
    @staticmethod
    def _parts(F, K, vol, T):
        sd = vol * T.sqrt()
        d = (F - K) / sd
        return sd, d, 0.5 * torch.erfc(-d / math.sqrt(2)), torch.exp(-d * d / 2) / math.sqrt(2 * math.pi)

    @staticmethod
    def forward(ctx, F, K, vol, T):
        ctx.save_for_backward(F, K, vol, T)
        sd, d, N, n = BachelierCall._parts(F, K, vol, T)
        return (F - K) * N + sd * n

    @staticmethod
    def backward(ctx, g):
        F, K, vol, T = ctx.saved_tensors
        _, _, N, n = BachelierCall._parts(F, K, vol, T)
        grads = g * N, -g * N, g * n * T.sqrt(), 0.5 * g * n * vol / T.sqrt()
        return tuple(d.sum_to_size(t.shape) for d, t in zip(grads, ctx.saved_tensors))
