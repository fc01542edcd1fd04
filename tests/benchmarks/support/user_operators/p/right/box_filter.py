import torch


def _window_sum(x, left, right, dim):
    """sum of x[t - left .. t + right] along dim, zeros outside"""
    n = x.shape[dim]
    c = torch.cat([torch.zeros_like(x.narrow(dim, 0, 1)), x.cumsum(dim)], dim)
    t = torch.arange(n, device=x.device)
    hi = (t + right + 1).clamp(max=n)
    lo = (t - left).clamp(min=0)
    return c.index_select(dim, hi) - c.index_select(dim, lo)


class BoxFilter(torch.autograd.Function):
    """Moving average of the samples around each position (zero padded).

    For an even window the extra sample is taken on the right.
    """

    @staticmethod
    def forward(x, window, dim=-1):
        if window < 1:
            raise ValueError("window must be positive")
        return _window_sum(x, (window - 1) // 2, window // 2, dim) / window

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.window, ctx.dim = inputs

    @staticmethod
    def backward(ctx, grad):
        left, right = (ctx.window - 1) // 2, ctx.window // 2
        return _window_sum(grad, right, left, ctx.dim) / ctx.window, None, None
