import math

import torch
from torch import Tensor
from torch.autograd import Function


def _reduce(g: Tensor, like: Tensor) -> Tensor:
    return g.sum_to_size(like.shape)


class FreePrecession(Function):
    """Free precession and relaxation over ``dt``.

    M: (N, nM, xyz); df [Hz], T1, T2 [s], M0: broadcastable to (N, nM)
    """

    @staticmethod
    def forward(ctx, M: Tensor, df: Tensor, T1: Tensor, T2: Tensor, M0: Tensor, dt: float) -> Tensor:
        ctx.save_for_backward(M, df, T1, T2, M0)
        ctx.dt = dt
        phi = 2 * math.pi * df * dt
        c, s = phi.cos(), phi.sin()
        E1, E2 = torch.exp(-dt / T1), torch.exp(-dt / T2)
        mx, my, mz = M.unbind(-1)
        return torch.stack([E2 * (c * mx + s * my), E2 * (c * my - s * mx), M0 + (mz - M0) * E1], -1)

    @staticmethod
    def backward(ctx, grad):
        M, df, T1, T2, M0 = ctx.saved_tensors
        dt = ctx.dt
        phi = 2 * math.pi * df * dt
        c, s = phi.cos(), phi.sin()
        E1, E2 = torch.exp(-dt / T1), torch.exp(-dt / T2)
        mx, my, mz = M.unbind(-1)
        gx, gy, gz = grad.unbind(-1)
        rx, ry = c * mx + s * my, c * my - s * mx
        hM = torch.stack([E2 * (c * gx - s * gy), E2 * (s * gx + c * gy), E1 * gz], -1)
        hdf = E2 * (gx * ry - gy * rx) * (2 * math.pi * dt)
        hT1 = gz * mz * E1 * dt / T1 ** 2
        hT2 = (gx * rx + gy * ry) * E2 * dt / T2 ** 2
        hM0 = gz * (1 - E1)
        return hM, _reduce(hdf, df), _reduce(hT1, T1), _reduce(hT2, T2), _reduce(hM0, M0), None
