import torch
from torch.autograd import Function


def _project(u, dx, dy):
    H, W = u.shape[-2:]
    ky = torch.fft.fftfreq(H, d=dy, dtype=u.dtype, device=u.device)[:, None]
    kx = torch.fft.fftfreq(W, d=dx, dtype=u.dtype, device=u.device)[None]
    k2 = kx ** 2 + ky ** 2
    k2[0, 0] = 1
    uh = torch.fft.fft2(u)
    div = (kx * uh[..., 0, :, :] + ky * uh[..., 1, :, :]) / k2
    out = torch.stack([uh[..., 0, :, :] - kx * div, uh[..., 1, :, :] - ky * div], -3)
    return torch.fft.ifft2(out).real


class LerayProjection(Function):
    @staticmethod
    def forward(ctx, u, dx=1.0, dy=1.0):
        ctx.spacing = dx, dy
        return _project(u, dx, dy)

    @staticmethod
    def backward(ctx, g):
        dx, dy = ctx.spacing
        return _project(g, dx, dy), None, None
