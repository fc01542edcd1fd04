import math
import torch
import torch.nn.functional as F


class RickerTrace(torch.autograd.Function):
    """Zero-phase synthetic seismogram.

    refl: (B, N) reflectivity series, f0: () peak frequency in Hz,
    dt: sample interval in s, half: half length of the wavelet in samples.
    Returns (B, N).
    """

    @staticmethod
    def _wavelet(f0, dt, half):
        t = torch.arange(-half, half + 1, dtype=f0.dtype, device=f0.device) * dt
        a = (math.pi * f0 * t) ** 2
        return t, a, torch.exp(-a)

    @staticmethod
    def forward(ctx, refl, f0, dt, half):
        t, a, e = RickerTrace._wavelet(f0, dt, half)
        ctx.save_for_backward(refl, f0)
        ctx.dt, ctx.half = dt, half
        w = (1 - 2 * a) * e
        return F.conv1d(refl[:, None], w[None, None], padding=half)[:, 0]

    @staticmethod
    def backward(ctx, g):
        refl, f0 = ctx.saved_tensors
        t, a, e = RickerTrace._wavelet(f0, ctx.dt, ctx.half)
        w = (1 - 2 * a) * e
        # wavelet is even: the adjoint is the same convolution
        g_refl = F.conv1d(g[:, None], w[None, None], padding=ctx.half)[:, 0]
        lagged = F.pad(refl, (ctx.half, ctx.half)).unfold(1, 2 * ctx.half + 1, 1)
        gw = torch.einsum("bn,bnk->k", g, lagged)
        dw_da = -2 * e - (1 - 2 * a) * e
        da_df = 2 * math.pi ** 2 * f0 * t ** 2
        return g_refl, (gw * dw_da * da_df).sum(), None, None
