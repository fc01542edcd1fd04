import torch
from torch.autograd.function import once_differentiable


class FractionalDelay(torch.autograd.Function):
    """Delay each row of ``signal`` (B, T) by ``delay`` (B,) samples, linear interpolation.

    Samples from outside the signal are zero. At an integer delay the slope
    with respect to the delay is that of the next larger delays.
    """

    @staticmethod
    def forward(ctx, signal, delay):
        b, t = signal.shape
        pos = torch.arange(t, device=signal.device, dtype=signal.dtype)[None] - delay[:, None]
        left = torch.ceil(pos).long() - 1
        frac = pos - left.to(pos.dtype)
        ok0 = (left >= 0) & (left < t)
        ok1 = (left + 1 >= 0) & (left + 1 < t)
        i0, i1 = left.clamp(0, t - 1), (left + 1).clamp(0, t - 1)
        x0 = signal.gather(1, i0) * ok0
        x1 = signal.gather(1, i1) * ok1
        ctx.save_for_backward(x0, x1, frac, i0, i1, ok0, ok1)
        return (1 - frac) * x0 + frac * x1

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        x0, x1, frac, i0, i1, ok0, ok1 = ctx.saved_tensors
        grad_signal = torch.zeros_like(grad_out, memory_format=torch.contiguous_format)
        grad_signal.scatter_add_(1, i0, grad_out * (1 - frac) * ok0)
        grad_signal.scatter_add_(1, i1, grad_out * frac * ok1)
        grad_delay = (grad_out * (x1 - x0)).sum(1)
        return grad_signal, grad_delay
