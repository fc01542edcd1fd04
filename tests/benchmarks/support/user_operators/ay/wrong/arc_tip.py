import torch
from torch.autograd import Function


class ArcTip(Function):

    @staticmethod
    def forward(ctx, kappa, phi, length):
        ctx.save_for_backward(kappa, phi, length)
        s = kappa * length
        tiny = s.abs() < 0.05
        ss = torch.where(tiny, torch.ones_like(s), s)
        r = length * torch.where(tiny, s / 2 - s ** 3 / 24 + s ** 5 / 720, (1 - ss.cos()) / ss)
        z = length * torch.where(tiny, 1 - s ** 2 / 6 + s ** 4 / 120, ss.sin() / ss)
        x, y, z = torch.broadcast_tensors(r * phi.cos(), r * phi.sin(), z)
        return torch.stack([x, y, z], -1)

    @staticmethod
    def backward(ctx, g):
        kappa, phi, length = ctx.saved_tensors
        s = kappa * length
        tiny = s.abs() < 0.05
        ss = torch.where(tiny, torch.ones_like(s), s)
        sinc = ss.sin() / ss
        r = length * torch.where(tiny, s / 2 - s ** 3 / 24 + s ** 5 / 720, (1 - ss.cos()) / ss)
        dA = torch.where(tiny, 0.5 - s ** 2 / 8 + s ** 4 / 144, sinc - (1 - ss.cos()) / ss ** 2)
        dS = torch.where(tiny, -s / 3 + s ** 3 / 30 - s ** 5 / 840, (ss.cos() - sinc) / ss)
        gx, gy, gz = g.unbind(-1)
        gr = gx * phi.cos() + gy * phi.sin()
        gphi = r * (gy * phi.cos() - gx * phi.sin())
        gkappa = length ** 2 * (gr * dA + gz * dS)
        glen = gr * s.sin() + gz * torch.where(tiny, torch.ones_like(s), sinc)
        return gkappa.sum_to_size(kappa.shape), gphi.sum_to_size(phi.shape), glen.sum_to_size(length.shape)
