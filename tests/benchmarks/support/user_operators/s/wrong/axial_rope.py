import torch


def _angles(pos, dim, theta):
    freq = theta ** (-torch.arange(0, dim // 2, 2, dtype=torch.float64) / (dim // 2))
    return pos[:, :1] * freq, pos[:, 1:] * freq


def _rotate(x, ang):
    c, s = ang.cos().to(x.dtype), ang.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)


class AxialRoPE(torch.autograd.Function):
    """2D rotary embedding: half of the channels turn with the row, half with the column.

    x (..., N, dim), dim divisible by 4; pos (N, 2) of integers.
    """

    @staticmethod
    def forward(ctx, x, pos, theta=100.0):
        row, col = _angles(pos, x.shape[-1], theta)
        ctx.save_for_backward(pos)
        ctx.theta = theta
        return _rotate(x, torch.cat([row, col], -1))

    @staticmethod
    def backward(ctx, grad):
        (pos,) = ctx.saved_tensors
        row, col = _angles(pos, grad.shape[-1], ctx.theta)
        return _rotate(grad, torch.cat([-row, col], -1)), None, None
