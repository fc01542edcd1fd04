import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, pad


def _carryover(retain: Tensor, peak: Tensor, max_lag: int) -> tuple[Tensor, Tensor]:
    lag = torch.arange(max_lag, dtype=retain.dtype, device=retain.device)[:, None]
    offset = lag - peak
    raw = torch.exp(offset**2 * logsigmoid(retain))
    return raw / raw.sum(0), offset


class _Adstock(torch.autograd.Function):
    @staticmethod
    def forward(ctx, media, retain, peak, max_lag):
        weight, _ = _carryover(retain, peak, max_lag)
        ctx.save_for_backward(media, retain, peak)
        ctx.max_lag = max_lag
        out = torch.zeros_like(media)
        for lag in range(min(max_lag, media.size(1))):
            out[:, lag:] += weight[lag] * media[:, : media.size(1) - lag]
        return out

    @staticmethod
    def backward(ctx, grad):
        media, retain, peak = ctx.saved_tensors
        steps = media.size(1)
        weight, offset = _carryover(retain, peak, ctx.max_lag)
        grad_media = torch.zeros_like(media)
        grad_weight = []
        for lag in range(ctx.max_lag):
            late = grad[:, lag:]
            grad_media = grad_media + pad(weight[lag] * late, (0, 0, 0, min(lag, steps)))
            grad_weight.append((late * media[:, : max(steps - lag, 0)]).sum((0, 1)))
        grad_weight = torch.stack(grad_weight)
        grad_log = weight * grad_weight
        grad_retain = (grad_log * offset**2).sum(0) * torch.sigmoid(-retain)
        grad_peak = (-2 * grad_log * offset).sum(0) * logsigmoid(retain)
        return grad_media, grad_retain, grad_peak, None


class DelayedAdstock(nn.Module):
    """Delayed carry-over of media spend, weights a^((lag - peak)^2) normalised over the lags.

    Args:
        channels: number of media channels.
        max_lag: number of lags kept.

    Shape: (batch, time, channels) -> the same.
    """

    def __init__(self, channels: int, max_lag: int) -> None:
        super().__init__()
        if max_lag < 1:
            raise ValueError("max_lag must be at least 1")
        self.max_lag = max_lag
        self.retain = nn.Parameter(torch.zeros(channels))
        self.peak = nn.Parameter(torch.ones(channels))

    def forward(self, media: Tensor) -> Tensor:
        if media.dim() != 3 or media.size(2) != self.retain.numel():
            raise ValueError(f"expected (batch, time, {self.retain.numel()}), got {tuple(media.shape)}")
        return _Adstock.apply(media, self.retain, self.peak, self.max_lag)
