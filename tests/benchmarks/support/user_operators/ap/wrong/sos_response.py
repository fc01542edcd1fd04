import math

import torch

DB = 20 / math.log(10)


class SOSResponse(torch.autograd.Function):
    """Magnitude in dB of a cascade of second order sections.

    Parameters
    ----------
    sos : (S, 6), rows b0 b1 b2 a0 a1 a2
    w : (F,) angular frequencies, constant

    Returns
    -------
    (F,)
    """

    @staticmethod
    def forward(ctx, sos, w):
        k = torch.arange(3, dtype=w.dtype, device=w.device)
        z = torch.exp(-1j * w[:, None] * k)
        num, den = z @ sos[:, :3].T.to(z.dtype), z @ sos[:, 3:].T.to(z.dtype)
        ctx.save_for_backward(sos, z)
        return DB * (num.abs().log() - den.abs().log()).sum(1)

    @staticmethod
    def backward(ctx, g):
        sos, z = ctx.saved_tensors
        num, den = z @ sos[:, :3].T.to(z.dtype), z @ sos[:, 3:].T.to(z.dtype)
        gz = g[:, None] * z
        gb = DB * ((1 / num).T @ gz).real
        ga = -DB * ((1 / den).T @ gz).real
        ga = torch.cat([torch.zeros_like(ga[:, :1]), ga[:, 1:]], 1)
        return torch.cat([gb, ga], 1), None
