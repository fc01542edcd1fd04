import math
import torch


class GoertzelPower(torch.autograd.Function):
    """Power of x (B, N) at arbitrary normalised frequencies f (K,) -> (B, K)."""

    @staticmethod
    def forward(x, f):
        if not (x.is_floating_point() and f.is_floating_point()):
            raise TypeError("real floating point expected")
        n = torch.arange(x.shape[-1], dtype=x.dtype, device=x.device)
        ph = 2 * math.pi * n[:, None] * f
        return ((x @ ph.cos()) ** 2 + (x @ ph.sin()) ** 2) / x.shape[-1]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, f = ctx.saved_tensors
        N = x.shape[-1]
        n = torch.arange(N, dtype=x.dtype, device=x.device)
        ph = 2 * math.pi * n[:, None] * f
        C, S = ph.cos(), ph.sin()
        gc = 2 * g * (x @ C) / N
        gs = 2 * g * (x @ S) / N
        gx = gc @ C.T + gs @ S.T
        xn = 2 * math.pi * n * x
        gf = (gs * (xn @ C) - gc * (xn @ S)).sum(0)
        return gx, gf
