import torch
from torch.autograd.function import once_differentiable


class VolumeRender(torch.autograd.Function):
    @staticmethod
    def forward(ctx, sigma, rgb, delta):
        # sigma (R, S)  rgb (R, S, 3)  delta (R, S), distances between samples
        tau = sigma * delta
        after = torch.exp(-tau.cumsum(1))
        before = torch.exp(-(tau.cumsum(1) - tau))
        w = before - after
        ctx.save_for_backward(rgb, delta, after, w)
        return (w.unsqueeze(-1) * rgb).sum(1), w.sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_rgb, grad_acc):
        rgb, delta, after, w = ctx.saved_tensors
        gw = (rgb * grad_rgb.unsqueeze(1)).sum(-1) + grad_acc.unsqueeze(1)
        wg = w * gw
        behind = wg.sum(1, keepdim=True) - wg.cumsum(1) + wg
        gsigma = delta * (after * gw - behind)
        return gsigma, w.unsqueeze(-1) * grad_rgb.unsqueeze(1), None
