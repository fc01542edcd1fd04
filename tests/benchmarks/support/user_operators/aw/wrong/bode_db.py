import math

import torch


class BodeMagnitude(torch.autograd.Function):
    # num, den: coefficients of s^0, s^1, ...; omega: frequency grid (not differentiated)
    @staticmethod
    def forward(ctx, num, den, omega):
        ctx.save_for_backward(num, den, omega)
        n = BodeMagnitude._powers(omega, len(num)) @ torch.complex(num, torch.zeros_like(num))
        d = BodeMagnitude._powers(omega, len(den)) @ torch.complex(den, torch.zeros_like(den))
        return 20 * torch.log10(n.abs() / d.abs())

    @staticmethod
    def _powers(omega, k):
        s = torch.complex(torch.zeros_like(omega), omega)
        return torch.stack([s ** i for i in range(k)], 1)

    @staticmethod
    def backward(ctx, g):
        num, den, omega = ctx.saved_tensors
        pn, pd = BodeMagnitude._powers(omega, len(num)), BodeMagnitude._powers(omega, len(den))
        n = pn @ torch.complex(num, torch.zeros_like(num))
        d = pd @ torch.complex(den, torch.zeros_like(den))
        scale = 20 / math.log(10) * g[:, None]
        g_num = (scale * (pn / n[:, None]).real).sum(0)
        g_den = -(scale * (pd / d[:, None]).abs()).sum(0)
        return g_num, g_den, None
