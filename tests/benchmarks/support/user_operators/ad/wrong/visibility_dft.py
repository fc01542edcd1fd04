import math
import torch


class PointSourceVis(torch.autograd.Function):
    @staticmethod
    def forward(ctx, flux, lm, uvw, half_w=True):
        l, m = lm[:, 0], lm[:, 1]
        n = torch.sqrt(1 - l ** 2 - m ** 2)
        phase = uvw[:, 0:1] * l + uvw[:, 1:2] * m
        if half_w:
            phase = phase + uvw[:, 2:3] * (n - 1)
        K = torch.exp(-2j * math.pi * phase)
        ctx.save_for_backward(flux, l, m, n, uvw, K)
        ctx.half_w = half_w
        return K @ flux.to(K.dtype)

    @staticmethod
    def backward(ctx, gV):
        flux, l, m, n, uvw, K = ctx.saved_tensors
        gK = gV.unsqueeze(1)
        g_flux = (gK.conj() * K).real.sum(0)
        # d V / d phase = -2 pi i I K
        g_phase = (gK.conj() * (-2j * math.pi) * K).real * flux
        gl = (g_phase * uvw[:, 0:1]).sum(0)
        gm = (g_phase * uvw[:, 1:2]).sum(0)
        if ctx.half_w:
            gn = (g_phase * uvw[:, 2:3]).sum(0)
            gl = gl - gn * l / n
            gm = gm - gn * l / n
        g_lm = torch.stack([gl, gm], dim=1)
        g_uvw = None
        if ctx.needs_input_grad[2]:
            gw = g_phase @ (n - 1) if ctx.half_w else torch.zeros_like(uvw[:, 2])
            g_uvw = torch.stack([g_phase @ l, g_phase @ m, gw], dim=1)
        return g_flux, g_lm, g_uvw, None
