import torch


class HuntCrossley(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pen, vel, k, d):
        ctx.save_for_backward(pen, vel, k, d)
        return k * pen.clamp(min=0) ** 1.5 * (1 + 1.5 * d * vel).clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        pen, vel, k, d = ctx.saved_tensors
        lin = 1 + 1.5 * d * vel
        on = (pen > 0) & (lin > 0)
        p = torch.where(on, pen, torch.ones_like(pen))
        g = torch.where(on, g, torch.zeros_like(g))
        p15 = p ** 1.5
        gp = g * 1.5 * k * p.sqrt() * lin
        gv = g * k * p15 * 1.5 * d
        gk = (g * p15 * lin).sum_to_size(k.shape)
        gd = (g * k * p15 * 1.5 * vel).sum_to_size(d.shape)
        return gp, gv, gk, gd


def contact_force(pen, vel, k, d):
    return HuntCrossley.apply(pen, vel, k, d)
