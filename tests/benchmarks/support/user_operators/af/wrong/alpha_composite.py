import torch
from torch.autograd.function import once_differentiable


class AlphaComposite(torch.autograd.Function):
    """Volume rendering of R rays with S samples.

    sigma (R, S), rgb (R, S, 3), t (R, S + 1) sample borders, background (3,) or None
    -> colour (R, 3), depth (R,), opacity (R,)
    The borders t are constants.
    """

    @staticmethod
    def forward(ctx, sigma, rgb, t, background=None):
        delta = t[:, 1:] - t[:, :-1]
        mid = 0.5 * (t[:, 1:] + t[:, :-1])
        tau = sigma * delta
        after = torch.exp(-torch.cumsum(tau, 1))
        before = torch.exp(-(torch.cumsum(tau, 1) - tau))
        w = before - after
        acc = w.sum(1)
        colour = (w[..., None] * rgb).sum(1)
        if background is not None:
            colour = colour + (1 - acc)[:, None] * background
        ctx.save_for_backward(rgb, delta, mid, after, w, acc, background)
        return colour, (w * mid).sum(1), acc

    @staticmethod
    @once_differentiable
    def backward(ctx, g_colour, g_depth, g_acc):
        rgb, delta, mid, after, w, acc, background = ctx.saved_tensors
        g_rgb = w[..., None] * g_colour[:, None, :]
        g_w = (rgb * g_colour[:, None, :]).sum(-1) + mid * g_depth[:, None] + g_acc[:, None]
        g_bg = None
        if background is not None:
            g_w = g_w - (g_colour @ background)[:, None]
            g_bg = ((1 - acc)[:, None] * g_colour).sum(0)
        wg = w * g_w
        behind = wg.sum(1, keepdim=True) - torch.cumsum(wg, 1) + wg
        g_sigma = (after * g_w - behind) * delta
        return g_sigma, g_rgb, None, g_bg
