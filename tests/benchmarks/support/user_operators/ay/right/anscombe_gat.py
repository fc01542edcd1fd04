import torch
from torch.autograd import Function


class GAT(Function):
    @staticmethod
    def forward(ctx, x, gain, sigma, mu):
        ctx.save_for_backward(x, gain)
        ctx.sigma, ctx.mu = sigma, mu
        z = gain * x + 0.375 * gain ** 2 + sigma ** 2 - gain * mu
        return 2 / gain * z.clamp(min=0).sqrt()

    @staticmethod
    def backward(ctx, g):
        x, gain = ctx.saved_tensors
        z = gain * x + 0.375 * gain ** 2 + ctx.sigma ** 2 - gain * ctx.mu
        on = z > 0
        root = torch.where(on, z, torch.ones_like(z)).sqrt()
        gx = torch.where(on, g / root, torch.zeros_like(g))
        g2 = torch.where(on, g, torch.zeros_like(g))
        gg = g2 * ((x + 0.75 * gain - ctx.mu) / (gain * root) - 2 * root / gain ** 2)
        return gx.sum_to_size(x.shape), gg.sum_to_size(gain.shape), None, None
