import torch
from torch import nn


class SGEval(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dirs, axis, log_sharpness, amplitude):
        ctx.save_for_backward(dirs, axis, log_sharpness, amplitude)
        mu = axis / axis.norm(dim=-1, keepdim=True)
        lobe = torch.exp(log_sharpness.exp() * (dirs @ mu.t() - 1))
        return lobe @ amplitude

    @staticmethod
    def backward(ctx, grad):
        dirs, axis, log_sharpness, amplitude = ctx.saved_tensors
        length = axis.norm(dim=-1, keepdim=True)
        mu = axis / length
        lam = log_sharpness.exp()
        cosm = dirs @ mu.t() - 1
        lobe = torch.exp(lam * cosm)
        d_exp = (grad @ amplitude.t()) * lobe
        d_cos = d_exp * lam
        d_mu = d_cos.t() @ dirs
        d_axis = (d_mu - mu * (mu * d_mu).sum(-1, keepdim=True)) / length
        return None, d_axis, (d_exp * cosm).sum(0) * lam, lobe.t() @ grad


class SGMixture(nn.Module):
    """Environment light as K spherical Gaussians: dirs (P, 3), unit length -> rgb (P, 3)."""

    def __init__(self, num_lobes=24):
        super().__init__()
        self.axis = nn.Parameter(torch.randn(num_lobes, 3))
        self.log_sharpness = nn.Parameter(torch.zeros(num_lobes))
        self.amplitude = nn.Parameter(torch.rand(num_lobes, 3))

    def forward(self, dirs):
        return SGEval.apply(dirs, self.axis, self.log_sharpness, self.amplitude)
