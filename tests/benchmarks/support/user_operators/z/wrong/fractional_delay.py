import torch


def _shift(x, n):
    """x (..., C, T) delayed by n[c] >= 0 samples, zeros before the start."""
    T = x.shape[-1]
    src = torch.arange(T, device=x.device) - n.unsqueeze(-1)
    out = x.gather(-1, src.clamp_min(0).expand(x.shape))
    return out * (src >= 0)


def _shift_back(x, n):
    T = x.shape[-1]
    src = torch.arange(T, device=x.device) + n.unsqueeze(-1)
    out = x.gather(-1, src.clamp_max(T - 1).expand(x.shape))
    return out * (src < T)


class FractionalDelay(torch.autograd.Function):
    """Delay every channel by a learnable number of samples, linear interpolation.

    x (B, C, T), delay (C,) in samples, not negative
    """

    @staticmethod
    def forward(ctx, x, delay):
        ctx.save_for_backward(x, delay)
        n = delay.floor().long()
        f = (delay - n).unsqueeze(-1)
        return (1 - f) * _shift(x, n) + f * _shift(x, n + 1)

    @staticmethod
    def backward(ctx, g):
        x, delay = ctx.saved_tensors
        n = delay.floor().long()
        f = (delay - n).unsqueeze(-1)
        gx = _shift_back((1 - f) * g, n) + _shift_back(f * g, n + 1)
        gd = (g * (_shift(x, n) - _shift(x, n + 1))).sum((0, 2))
        return gx, gd
