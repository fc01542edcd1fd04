import math

import torch


class StructureFactor(torch.autograd.Function):
    """F(h) = sum_j f_j exp(2 pi i h . x_j)

    xyz: (N, 3) fractional coordinates, f: (N,) scattering factors, hkl: (M, 3) Miller indices.
    Returns (M,) complex.
    """

    @staticmethod
    def forward(ctx, xyz, f, hkl):
        phase = 2 * math.pi * (hkl.to(xyz.dtype) @ xyz.t())
        ctx.save_for_backward(xyz, f, hkl)
        return (f * torch.polar(torch.ones_like(phase), phase)).sum(1)

    @staticmethod
    def backward(ctx, grad):
        xyz, f, hkl = ctx.saved_tensors
        h = hkl.to(xyz.dtype)
        phase = 2 * math.pi * (h @ xyz.t())
        e = torch.complex(phase.cos(), phase.sin())
        ge = grad.conj()[:, None] * e
        g_f = ge.real.sum(0)
        g_phase = -(ge.imag * f)
        return 2 * math.pi * g_phase.t() @ h, g_f, None
