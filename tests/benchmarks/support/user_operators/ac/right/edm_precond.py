import torch
from torch import nn


class EDMCombine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, f, sigma, sd):
        ctx.save_for_backward(x, f, sigma)
        ctx.sd = sd
        v = (sigma ** 2 + sd ** 2).view(-1, *[1] * (x.dim() - 1))
        s = sigma.view_as(v)
        return sd ** 2 / v * x + s * sd / v.sqrt() * f

    @staticmethod
    def backward(ctx, g):
        x, f, sigma = ctx.saved_tensors
        sd = ctx.sd
        v = (sigma ** 2 + sd ** 2).view(-1, *[1] * (x.dim() - 1))
        s = sigma.view_as(v)
        c_skip = sd ** 2 / v
        c_out = s * sd / v.sqrt()
        d_skip = -2 * s * sd ** 2 / v ** 2
        d_out = sd ** 3 / v ** 1.5
        g_sigma = (g * (d_skip * x + d_out * f)).flatten(1).sum(1)
        return c_skip * g, c_out * g, g_sigma, None


class EDMPrecond(nn.Module):
    def __init__(self, channels, sigma_data=0.5):
        super().__init__()
        self.sigma_data = sigma_data
        self.net = nn.Conv1d(channels, channels, 3, padding=1)
        self.emb = nn.Linear(1, channels)

    def forward(self, x, sigma):
        c_in = (sigma ** 2 + self.sigma_data ** 2).rsqrt().view(-1, 1, 1)
        c_noise = sigma.log().div(4).unsqueeze(1)
        f = torch.tanh(self.net(c_in * x) + self.emb(c_noise).unsqueeze(-1))
        return EDMCombine.apply(x, f, sigma, self.sigma_data)
