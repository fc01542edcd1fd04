import torch
from torch.autograd.function import once_differentiable


class VolumeRender(torch.autograd.Function):
    """Emission-absorption compositing along rays.

    sigma (R, S) densities, delta (R, S) segment lengths, rgb (R, S, C)
    -> color (R, C), weights (R, S)
    """

    @staticmethod
    def forward(ctx, sigma, delta, rgb):
        tau = sigma * delta
        trans = torch.exp(-(tau.cumsum(1) - tau))
        weights = trans * (1 - torch.exp(-tau))
        ctx.save_for_backward(sigma, delta, rgb, trans, weights)
        return (weights.unsqueeze(-1) * rgb).sum(1), weights

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_color, grad_weights):
        sigma, delta, rgb, trans, weights = ctx.saved_tensors
        grad_rgb = weights.unsqueeze(-1) * grad_color.unsqueeze(1)
        gw = grad_weights + (rgb * grad_color.unsqueeze(1)).sum(-1)
        gww = gw * weights
        behind = gww.flip(1).cumsum(1).flip(1) - gww
        grad_tau = gw * trans * torch.exp(-sigma * delta) - behind
        return grad_tau * delta, grad_tau * sigma, grad_rgb
