import torch
import torch.nn as nn
from torch import Tensor


class _MixedPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, logit: Tensor, k: int) -> Tensor:
        ctx.k = k
        ctx.save_for_backward(x, logit)
        a = torch.sigmoid(logit)[:, None, None]
        win = _MixedPool._windows(x, k)
        return a * win.amax(-1) + (1 - a) * win.mean(-1)

    @staticmethod
    def _windows(x: Tensor, k: int) -> Tensor:
        h, w = x.size(2) // k * k, x.size(3) // k * k
        return x[:, :, :h, :w].unflatten(2, (-1, k)).unflatten(4, (-1, k)).transpose(3, 4).flatten(4)

    @staticmethod
    def backward(ctx, g: Tensor):
        x, logit = ctx.saved_tensors
        k = ctx.k
        a = torch.sigmoid(logit)
        win = _MixedPool._windows(x, k)
        dlogit = (g * (win.amax(-1) - win.mean(-1))).sum((0, 2, 3)) * a * (1 - a)
        a = a[:, None, None]
        dwin = ((1 - a) * g / k**2).unsqueeze(-1).expand_as(win)
        dwin = dwin.scatter_add(-1, win.argmax(-1, keepdim=True), (a * g).unsqueeze(-1))
        n, m = win.shape[2:4]
        dwin = dwin.unflatten(4, (k, k)).transpose(3, 4).reshape(*x.shape[:2], n * k, m * k)
        dx = torch.zeros_like(x)
        dx[:, :, : n * k, : m * k] = dwin
        return dx, dlogit, None


class MixedPool2d(nn.Module):
    """Learned mixture of max and average pooling per channel; a rest that fills no window is dropped."""

    def __init__(self, channels: int, k: int = 2) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.zeros(channels))
        self.k = k

    def forward(self, x: Tensor) -> Tensor:
        return _MixedPool.apply(x, self.logit, self.k)
