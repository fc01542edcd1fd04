import math

import torch


class BeamPower(torch.autograd.Function):
    """|w^H a(theta)|^2 of a linear array.

    w (M,) complex weights, pos (M,) positions in wavelengths, theta (K,) angles in rad
    """

    @staticmethod
    def forward(ctx, w, pos, theta):
        ctx.save_for_backward(w, pos, theta)
        phase = 2 * math.pi * pos * torch.sin(theta)[:, None]
        s = torch.complex(phase.cos(), phase.sin()) @ w.conj()
        return s.real**2 + s.imag**2

    @staticmethod
    def backward(ctx, g):
        w, pos, theta = ctx.saved_tensors
        phase = 2 * math.pi * pos * torch.sin(theta)[:, None]
        a = torch.complex(phase.cos(), phase.sin())
        s = a @ w.conj()
        gs = 2 * g * s.conj()
        g_w = gs.conj() @ a.conj()
        g_phase = -(gs[:, None] * a * w.conj()).imag
        g_pos = 2 * math.pi * (g_phase * torch.sin(theta)[:, None]).sum(0)
        g_theta = 2 * math.pi * torch.cos(theta) * (g_phase * pos).sum(1)
        return g_w, g_pos, g_theta
