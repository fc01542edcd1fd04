import math
import torch
from torch.autograd.function import once_differentiable


def expval_z(angles):
    """<Z> after alternating RY, RX on |0>; angles (B, L)"""
    psi = torch.zeros(angles.shape[0], 2, dtype=torch.complex128 if angles.dtype == torch.float64 else torch.complex64,
                      device=angles.device)
    psi[:, 0] = 1
    for l in range(angles.shape[1]):
        c, s = torch.cos(angles[:, l] / 2), torch.sin(angles[:, l] / 2)
        p0, p1 = psi[:, 0], psi[:, 1]
        if l % 2 == 0:
            psi = torch.stack([c * p0 - s * p1, s * p0 + c * p1], 1)
        else:
            psi = torch.stack([c * p0 - 1j * s * p1, c * p1 - 1j * s * p0], 1)
    return psi[:, 0].abs() ** 2 - psi[:, 1].abs() ** 2


class ReuploadCircuit(torch.autograd.Function):
    """theta (L,), x (B,): every gate turns by theta_l + x.  Gradient by the parameter-shift rule."""

    @staticmethod
    def forward(ctx, theta, x):
        angles = theta[None] + x[:, None]
        ctx.save_for_backward(angles)
        return expval_z(angles)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        angles, = ctx.saved_tensors
        L = angles.shape[1]
        per = torch.empty_like(angles)
        for l in range(L):
            e = torch.zeros(L, dtype=angles.dtype, device=angles.device)
            e[l] = math.pi / 2
            per[:, l] = 0.5 * (expval_z(angles + e) - expval_z(angles - e))
        g_x = g * 0.5 * (expval_z(angles + math.pi / 2) - expval_z(angles - math.pi / 2))
        return (g[:, None] * per).sum(0), g_x
