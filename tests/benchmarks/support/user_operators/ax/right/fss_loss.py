import torch
import torch.nn.functional as F
from torch import nn


class _FSS(torch.autograd.Function):
    @staticmethod
    def box(field, window):
        flat = field.reshape(-1, 1, *field.shape[-2:])
        return F.avg_pool2d(flat, window, stride=1, padding=window // 2).reshape(field.shape)

    @staticmethod
    def forward(ctx, fcst, obs, window):
        ctx.save_for_backward(fcst, obs)
        ctx.window = window
        f, o = _FSS.box(fcst, window), _FSS.box(obs, window)
        return (f - o).pow(2).sum((-2, -1)) / (f.pow(2) + o.pow(2)).sum((-2, -1))

    @staticmethod
    def backward(ctx, grad):
        fcst, obs = ctx.saved_tensors
        f, o = _FSS.box(fcst, ctx.window), _FSS.box(obs, ctx.window)
        ref = (f.pow(2) + o.pow(2)).sum((-2, -1), keepdim=True)
        score = (f - o).pow(2).sum((-2, -1), keepdim=True) / ref
        g = 2 * grad[..., None, None] / ref
        g_f = _FSS.box(g * (f - o - score * f), ctx.window)
        g_o = _FSS.box(g * (o - f - score * o), ctx.window)
        return g_f, g_o, None


class FSSLoss(nn.Module):
    """One minus the fractions skill score, averaged over the batch.

    Args:
        window: side of the neighbourhood in grid points, odd.

    Shape:
        fcst, obs: ``(..., H, W)``, probabilities or masks in [0, 1], with an event somewhere in every field.
    """

    def __init__(self, window=5):
        super().__init__()
        if window % 2 == 0:
            raise ValueError("window must be odd")
        self.window = window

    def forward(self, fcst, obs):
        return _FSS.apply(fcst, obs, self.window).mean()
