"""Cost volume of two feature maps within a square neighbourhood."""
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function


def _window(x: Tensor, radius: int, dilation: int):
    h, w = x.shape[-2:]
    r = radius * dilation
    padded = F.pad(x, (r, r, r, r))
    for i in range(0, 2 * r + 1, dilation):
        for j in range(0, 2 * r + 1, dilation):
            yield padded[..., i : i + h, j : j + w]


class LocalCorrelation(Function):
    """
    Args:
        first: ``(N, C, H, W)``
        second: ``(N, C, H, W)``, zero outside
        radius: largest displacement in steps of ``dilation``
        dilation: step in pixels
        normalize: divide by the number of channels

    Returns:
        ``(N, (2 * radius + 1) ** 2, H, W)``
    """

    @staticmethod
    def forward(ctx, first, second, radius=1, dilation=1, normalize=True):
        if first.shape != second.shape:
            raise ValueError(f"shapes differ: {tuple(first.shape)} and {tuple(second.shape)}")
        ctx.save_for_backward(first, second)
        ctx.radius, ctx.dilation, ctx.normalize = radius, dilation, normalize
        out = torch.stack([(first * s).sum(1) for s in _window(second, radius, dilation)], 1)
        return out / first.shape[1] if normalize else out

    @staticmethod
    def backward(ctx, grad_output):
        first, second = ctx.saved_tensors
        if ctx.normalize:
            grad_output = grad_output / first.shape[1]
        grad_first = grad_second = None
        if ctx.needs_input_grad[0]:
            shifted = _window(second, ctx.radius, ctx.dilation)
            grad_first = sum(g.unsqueeze(1) * s for g, s in zip(grad_output.unbind(1), shifted))
        if ctx.needs_input_grad[1]:
            maps = grad_output.unbind(1)
            spread = [list(_window(g.unsqueeze(1) * first, ctx.radius, ctx.dilation)) for g in maps]
            last = len(maps) - 1
            grad_second = sum(spread[k][k] for k in range(len(maps)))
        return grad_first, grad_second, None, None, None
