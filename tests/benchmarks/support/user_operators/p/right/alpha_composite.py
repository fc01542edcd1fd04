import torch


class AlphaComposite(torch.autograd.Function):
    """Volume rendering quadrature along rays.

    sigma (R, S), rgb (R, S, C), delta (R, S), background (C,) or None.
    Returns colour (R, C) and accumulated opacity (R,).
    """

    @staticmethod
    def forward(ctx, sigma, rgb, delta, background=None):
        if sigma.is_complex() or rgb.is_complex() or delta.is_complex():
            raise TypeError("complex inputs are not supported")
        tau = sigma * delta
        trans = torch.exp(-(tau.cumsum(-1) - tau))
        weights = trans * (1 - torch.exp(-tau))
        colour = (weights.unsqueeze(-1) * rgb).sum(-2)
        acc = weights.sum(-1)
        if background is not None:
            colour = colour + (1 - acc).unsqueeze(-1) * background
        ctx.save_for_backward(sigma, rgb, delta, background)
        return colour, acc

    @staticmethod
    def backward(ctx, g_colour, g_acc):
        sigma, rgb, delta, background = ctx.saved_tensors
        tau = sigma * delta
        trans = torch.exp(-(tau.cumsum(-1) - tau))
        after = trans * torch.exp(-tau)
        weights = trans - after

        g_w = (g_colour.unsqueeze(-2) * rgb).sum(-1) + g_acc.unsqueeze(-1)
        g_bg = None
        if background is not None:
            g_w = g_w - (g_colour * background).sum(-1, keepdim=True)
            g_bg = (after[..., -1:] * g_colour).sum(0)
        gw_w = g_w * weights
        behind = gw_w.flip(-1).cumsum(-1).flip(-1) - gw_w
        g_tau = g_w * after - behind
        g_rgb = weights.unsqueeze(-1) * g_colour.unsqueeze(-2)
        return g_tau * delta, g_rgb, g_tau * sigma, g_bg
