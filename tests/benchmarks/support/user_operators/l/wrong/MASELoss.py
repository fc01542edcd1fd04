import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import pad


class MASELoss(Function):
    """Mean absolute scaled error (Hyndman & Koehler, 2006), averaged over the series.

    Args:
        forecast, actual: (B, H)
        insample: (B, L) history that gives the scale, the mean absolute error of the
            (seasonal) naive forecast
        m: season length, 1 <= m < L
    """

    @staticmethod
    def forward(ctx, forecast: Tensor, actual: Tensor, insample: Tensor, m: int = 1) -> Tensor:
        if not 1 <= m < insample.size(1):
            raise ValueError("season must be shorter than the history")
        naive = insample[:, m:] - insample[:, :-m]
        scale = naive.abs().mean(1, keepdim=True)
        err = forecast - actual
        ctx.save_for_backward(forecast, actual, insample)
        ctx.m = m
        return (err.abs() / scale).mean()

    @staticmethod
    def backward(ctx, g: Tensor):
        forecast, actual, insample = ctx.saved_tensors
        m = ctx.m
        naive = insample[:, m:] - insample[:, :-m]
        n = insample.size(1) - 1
        scale = naive.abs().sum(1, keepdim=True) / n
        err = forecast - actual
        g_f = g * err.sign() / scale / err.numel()
        g_in = None
        if ctx.needs_input_grad[2]:
            g_scale = -g * err.abs().sum(1, keepdim=True) / scale ** 2 / err.numel()
            g_naive = g_scale * naive.sign() / n
            g_in = pad(g_naive, (m, 0)) - pad(g_naive, (0, m))
        return g_f, -g_f, g_in, None
