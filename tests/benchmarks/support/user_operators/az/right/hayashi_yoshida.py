import torch
from torch import Tensor


def _overlap(a: Tensor, b: Tensor) -> Tensor:
    return (torch.maximum(a[:, None, 0], b[None, :, 0]) < torch.minimum(a[:, None, 1], b[None, :, 1])).to(a.dtype)


class _HayashiYoshida(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x_returns, y_returns, x_spans, y_spans):
        ctx.save_for_backward(x_returns, y_returns, x_spans, y_spans)
        return x_returns @ _overlap(x_spans, y_spans) @ y_returns

    @staticmethod
    def backward(ctx, grad):
        x_returns, y_returns, x_spans, y_spans = ctx.saved_tensors
        overlap = _overlap(x_spans, y_spans)
        return grad * (overlap @ y_returns), grad * (x_returns @ overlap), None, None


def hayashi_yoshida(x_returns: Tensor, y_returns: Tensor, x_spans: Tensor, y_spans: Tensor) -> Tensor:
    """Hayashi-Yoshida covariance of two series observed at different times.

    x_returns (N,), y_returns (M,); x_spans (N, 2), y_spans (M, 2) with begin and end of each return.
    Intervals that only touch do not overlap. Returns a scalar.
    """
    if x_spans.shape != (x_returns.numel(), 2) or y_spans.shape != (y_returns.numel(), 2):
        raise ValueError("one (begin, end) per return is needed")
    return _HayashiYoshida.apply(x_returns, y_returns, x_spans, y_spans)
