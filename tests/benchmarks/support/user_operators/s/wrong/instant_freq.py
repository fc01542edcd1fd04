import math

import torch


class InstantFrequency(torch.autograd.Function):
    """Frequency between neighbouring samples of a complex (analytic) signal, in units of fs."""

    @staticmethod
    def forward(ctx, z, fs):
        ctx.save_for_backward(z)
        ctx.scale = fs / (2 * math.pi)
        return torch.angle(z[..., 1:] * z[..., :-1].conj()) * ctx.scale

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        now, last = z[..., 1:], z[..., :-1]
        d = now * last.conj()
        gd = ctx.scale * grad * 1j * d / (d.real**2 + d.imag**2)
        gz = torch.zeros_like(z)
        gz[..., 1:] += gd * last
        gz[..., :-1] += gd * now
        return gz, None
