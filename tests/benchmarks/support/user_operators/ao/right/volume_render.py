from typing import Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class VolumeRender(torch.autograd.Function):
    """
    Emission-absorption compositing along rays.

    sigma  (R, S)     densities
    rgb    (R, S, 3)  colours
    delta  (R, S)     lengths of the intervals

    Returns colour (R, 3), opacity (R,) and the weights (R, S); the weights carry no gradient.
    """

    @staticmethod
    def forward(ctx, sigma: Tensor, rgb: Tensor, delta: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        tau = sigma * delta
        after = torch.exp(-tau.cumsum(1))
        before = torch.cat([torch.ones_like(after[:, :1]), after[:, :-1]], 1)
        w = before - after
        ctx.save_for_backward(sigma, rgb, delta)
        ctx.after = after
        weights = w.clone()
        ctx.mark_non_differentiable(weights)
        return (w.unsqueeze(-1) * rgb).sum(1), w.sum(1), weights

    @staticmethod
    @once_differentiable
    def backward(ctx, g_rgb: Tensor, g_acc: Tensor, _):
        sigma, rgb, delta = ctx.saved_tensors
        after = ctx.after
        before = torch.cat([torch.ones_like(after[:, :1]), after[:, :-1]], 1)
        w = before - after
        u = (g_rgb.unsqueeze(1) * rgb).sum(-1) + g_acc.unsqueeze(1)
        wu = w * u
        behind = wu.sum(1, keepdim=True) - wu.cumsum(1)
        g_tau = after * u - behind
        return g_tau * delta, w.unsqueeze(-1) * g_rgb.unsqueeze(1), g_tau * sigma
