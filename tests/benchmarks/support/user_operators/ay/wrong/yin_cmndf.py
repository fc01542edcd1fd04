import torch


def _differences(x, lag, win):
    return torch.stack([x[..., :win] - x[..., k:k + win] for k in range(1, lag + 1)], -2)


class YinCMNDF(torch.autograd.Function):
    """Cumulative mean normalised difference function of YIN.

    Args:
        x (Tensor): frames, shape (..., T)
        max_lag (int): lags 1 .. max_lag, max_lag < T
        eps (float): added to the cumulative sum

    Returns:
        Tensor (..., max_lag)
    """

    @staticmethod
    def forward(ctx, x, max_lag, eps=1e-8):
        ctx.save_for_backward(x)
        ctx.max_lag, ctx.eps = max_lag, eps
        d = _differences(x, max_lag, x.shape[-1] - max_lag).square().sum(-1)
        tau = torch.arange(1, max_lag + 1, device=x.device, dtype=x.dtype)
        return tau * d / (d.cumsum(-1) + eps)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        L, W = ctx.max_lag, x.shape[-1] - ctx.max_lag
        diff = _differences(x, L, W)
        d = diff.square().sum(-1)
        q = d.cumsum(-1) + ctx.eps
        tau = torch.arange(1, L + 1, device=x.device, dtype=x.dtype)
        gq = -g * tau * d / q ** 2
        gd = g * tau / q + gq.cumsum(-1)
        gdiff = 2 * gd[..., None] * diff
        gx = torch.zeros_like(x)
        gx[..., :W] += gdiff.sum(-2)
        for k in range(1, L + 1):
            gx[..., k:k + W] -= gdiff[..., k - 1, :]
        return gx, None, None
