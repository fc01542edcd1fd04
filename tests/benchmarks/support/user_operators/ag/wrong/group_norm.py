import torch
from torch.autograd.function import Function, once_differentiable


class GroupNormFn(Function):
    """Group normalisation, affine optional. Input of shape (N, C, *)."""

    @staticmethod
    def forward(ctx, x, groups, weight=None, bias=None, eps=1e-5):
        n, c = x.shape[:2]
        assert c % groups == 0, f"{c} channels in {groups} groups"
        xg = x.reshape(n, groups, -1)
        mean = xg.mean(-1, keepdim=True)
        var = xg.var(-1, unbiased=False, keepdim=True)
        rstd = torch.rsqrt(var + eps)
        xhat = ((xg - mean) * rstd).reshape(x.shape)
        affine_shape = (1, c) + (1,) * (x.dim() - 2)
        y = xhat
        if weight is not None:
            y = y * weight.view(affine_shape)
        if bias is not None:
            y = y + bias.view(affine_shape)
        ctx.save_for_backward(xhat, rstd, weight)
        ctx.groups, ctx.affine_shape, ctx.has_bias = groups, affine_shape, bias is not None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        xhat, rstd, weight = ctx.saved_tensors
        n, c = xhat.shape[:2]
        over = [d for d in range(xhat.dim()) if d != 1]
        gw = (gy * xhat).sum(over) if weight is not None else None
        gb = gy.sum(over) if ctx.has_bias else None
        if weight is not None:
            gy = gy * weight.view(ctx.affine_shape)
        g = gy.view(n, ctx.groups, -1)
        h = xhat.reshape(n, ctx.groups, -1)
        gx = rstd * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))
        return gx.reshape(xhat.shape), None, gw, gb, None
