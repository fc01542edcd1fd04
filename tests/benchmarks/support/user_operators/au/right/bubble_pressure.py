import math

import torch

LN10 = math.log(10.0)


class BubblePressure(torch.autograd.Function):
    """Raoult bubble pressure P = sum_i x_i 10^(A_i - B_i / (C_i + T)).

    x (B, C) liquid mole fractions, T (B,) degC, antoine (C, 3) -> P (B,)
    """

    @staticmethod
    def forward(ctx, x, T, antoine):
        ctx.save_for_backward(x, T, antoine)
        A, B, C = antoine.unbind(1)
        return (x * 10 ** (A - B / (C + T[:, None]))).sum(1)

    @staticmethod
    def backward(ctx, gP):
        x, T, antoine = ctx.saved_tensors
        A, B, C = antoine.unbind(1)
        den = C + T[:, None]
        psat = 10 ** (A - B / den)
        gx = gP[:, None] * psat
        part = LN10 * gx * x
        gT = (part * B / den**2).sum(1)
        gA = part.sum(0)
        gB = -(part / den).sum(0)
        gC = (part * B / den**2).sum(0)
        return gx, gT, torch.stack([gA, gB, gC], 1)
