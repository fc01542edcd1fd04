import torch
from torch.autograd.function import once_differentiable


class VolumeRender(torch.autograd.Function):
    """Emission-absorption along rays.

    sigma, delta: (R, S), color: (R, S, C), background: (C,). Returns the colour (R, C) and opacity (R,).
    """

    @staticmethod
    def forward(ctx, sigma, delta, color, background):
        trans = torch.exp(-(sigma * delta).cumsum(-1))
        before = torch.cat([torch.ones_like(trans[:, :1]), trans[:, :-1]], -1)
        w = before - trans
        ctx.save_for_backward(sigma, delta, color, background, trans, w)
        return (w[..., None] * color).sum(1) + trans[:, -1:] * background, w.sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g_color, g_alpha):
        sigma, delta, color, background, trans, w = ctx.saved_tensors
        gw = (g_color[:, None] * color).sum(-1) + g_alpha[:, None]
        wg = w * gw
        behind = wg.flip(-1).cumsum(-1).flip(-1)
        end = (g_color * background).sum(-1, keepdim=True) * trans[:, -1:]
        gx = trans * gw - behind - end
        return gx * delta, gx * sigma, w[..., None] * g_color[:, None], (trans[:, -1:] * g_color).sum(0)
