import torch


def _stats(x, m, eps):
    n = m.sum().clamp(min=1)
    mean = (x * m).sum((0, 1)) / n
    var = ((x - mean).square() * m).sum((0, 1)) / n
    return n, mean, var, torch.rsqrt(var + eps)


class MaskedBatchNorm(torch.autograd.Function):
    """Batch norm over the valid frames of padded sequences.

    x (B, T, C), mask (B, T) bool, weight (C,), bias (C,).
    Returns y (zero at padding), and mean and biased var for the running averages (no gradient).
    """

    @staticmethod
    def forward(ctx, x, mask, weight, bias, eps=1e-5):
        m = mask[..., None].to(x.dtype)
        _, mean, var, inv = _stats(x, m, eps)
        ctx.save_for_backward(x, mask, weight)
        ctx.eps = eps
        y = ((x - mean) * inv * weight + bias) * m
        ctx.mark_non_differentiable(mean, var)
        return y, mean, var

    @staticmethod
    def backward(ctx, dy, _dmean, _dvar):
        x, mask, weight = ctx.saved_tensors
        m = mask[..., None].to(x.dtype)
        n, mean, _, inv = _stats(x, m, ctx.eps)
        xhat = (x - mean) * inv * m
        dy = dy * m
        dbias = dy.sum((0, 1))
        dweight = (dy * xhat).sum((0, 1))
        dx = weight * inv * (dy - m * dbias / n - xhat * dweight / n)
        return dx, None, dweight, dbias, None
