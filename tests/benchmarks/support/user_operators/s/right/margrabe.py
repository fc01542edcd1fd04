import math

import torch


class Margrabe(torch.autograd.Function):
    """Option to exchange asset 2 for asset 1 (Margrabe 1978).  All arguments broadcast.

    s1, s2 : prices
    v1, v2 : volatilities
    rho : correlation, -1 < rho < 1
    t : years, > 0
    """

    @staticmethod
    def forward(ctx, s1, s2, v1, v2, rho, t):
        ctx.save_for_backward(s1, s2, v1, v2, rho, t)
        sig = (v1**2 + v2**2 - 2 * rho * v1 * v2).sqrt()
        std = sig * t.sqrt()
        d1 = (s1 / s2).log() / std + std / 2
        return s1 * torch.special.ndtr(d1) - s2 * torch.special.ndtr(d1 - std)

    @staticmethod
    def backward(ctx, grad):
        args = ctx.saved_tensors
        s1, s2, v1, v2, rho, t = args
        sig = (v1**2 + v2**2 - 2 * rho * v1 * v2).sqrt()
        root = t.sqrt()
        std = sig * root
        d1 = (s1 / s2).log() / std + std / 2
        density = s1 * torch.exp(-0.5 * d1 * d1) / math.sqrt(2 * math.pi)
        gsig = grad * density * root
        grads = (
            grad * torch.special.ndtr(d1),
            -grad * torch.special.ndtr(d1 - std),
            gsig * (v1 - rho * v2) / sig,
            gsig * (v2 - rho * v1) / sig,
            -gsig * v1 * v2 / sig,
            grad * density * sig / (2 * root),
        )
        return tuple(g.sum_to_size(a.shape) for g, a in zip(grads, args))
