import torch
from torch import Tensor


class _CMND(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, max_lag, eps):
        window = x.size(1) - max_lag
        frames = x.unfold(1, window, 1)
        dist = (frames[:, :1] - frames[:, 1:]).square().sum(-1)
        lag = torch.arange(1, max_lag + 1, dtype=x.dtype, device=x.device)
        ctx.save_for_backward(x)
        ctx.max_lag, ctx.eps = max_lag, eps
        return dist * lag / (dist.cumsum(1) + eps)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        max_lag, window = ctx.max_lag, x.size(1) - ctx.max_lag
        frames = x.unfold(1, window, 1)
        diff = frames[:, :1] - frames[:, 1:]
        dist = diff.square().sum(-1)
        total = dist.cumsum(1) + ctx.eps
        lag = torch.arange(1, max_lag + 1, dtype=x.dtype, device=x.device)
        scaled = grad * lag / total
        g_dist = scaled - (scaled * dist / total).flip(1).cumsum(1).flip(1)
        g_diff = 2 * g_dist[..., None] * diff
        grad_x = torch.nn.functional.pad(g_diff.sum(1), (0, max_lag))
        for k in range(max_lag):
            grad_x = grad_x - torch.nn.functional.pad(g_diff[:, k], (k + 1, max_lag - k - 1))
        return grad_x, None, None


def yin_cmnd(x: Tensor, max_lag: int, eps: float = 1e-6) -> Tensor:
    """Cumulative mean normalised difference of YIN, lags 1 to max_lag: (B, N) -> (B, max_lag)"""
    if not 0 < max_lag < x.size(1):
        raise ValueError(f"max_lag {max_lag} does not fit {x.size(1)} samples")
    return _CMND.apply(x, max_lag, eps)
