from typing import Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class GarchNLL(torch.autograd.Function):
    """Gaussian negative log-likelihood (without constants) of a GARCH(1, 1) for zero-mean returns.

    h_0 = ``h0`` or the unconditional variance; the first ``burn`` terms are left out of the sum.
    """

    @staticmethod
    def forward(ctx, r: Tensor, omega: Tensor, alpha: Tensor, beta: Tensor, h0: Optional[float] = None,
                burn: int = 0) -> Tensor:
        h = omega / (1 - alpha - beta) if h0 is None else torch.full_like(omega, h0)
        hs = [h]
        for t in range(1, len(r)):
            h = omega + alpha * r[t - 1] ** 2 + beta * h
            hs.append(h)
        hs = torch.stack(hs)
        ctx.save_for_backward(r, omega, alpha, beta, hs)
        ctx.start_free, ctx.burn = h0 is None, burn
        return 0.5 * (hs.log() + r ** 2 / hs)[burn:].sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):
        r, omega, alpha, beta, hs = ctx.saved_tensors
        direct = 0.5 * (1 / hs - r ** 2 / hs ** 2)
        direct[: ctx.burn] = 0
        g_r = torch.where(torch.arange(len(r), device=r.device) >= ctx.burn, r / hs, torch.zeros_like(r))
        lam = torch.zeros_like(omega)
        g_o, g_a, g_b = torch.zeros_like(omega), torch.zeros_like(omega), torch.zeros_like(omega)
        for t in range(len(r) - 1, 0, -1):
            lam = direct[t] + alpha * lam
            g_o += lam
            g_a += lam * r[t - 1] ** 2
            g_b += lam * hs[t - 1]
            g_r[t - 1] += 2 * alpha * lam * r[t - 1]
        lam = direct[0] + beta * lam
        if ctx.start_free:
            left = 1 - alpha - beta
            g_o += lam / left
            g_a += lam * omega / left ** 2
            g_b += lam * omega / left ** 2
        return g * g_r, g * g_o, g * g_a, g * g_b, None, None
