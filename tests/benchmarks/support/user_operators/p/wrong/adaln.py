import torch
from torch.autograd import Function


class AdaLNModulate(Function):
    """LayerNorm without affine followed by x * (1 + scale) + shift.  x (B, T, D); shift, scale (B, D)."""

    @staticmethod
    def forward(ctx, x, shift, scale, eps=1e-6):
        if x.is_complex() or scale.is_complex() or shift.is_complex():
            raise TypeError("complex inputs are not supported")
        B, T, D = x.shape
        if shift.shape != (B, D) or scale.shape != (B, D):
            raise ValueError("shift and scale must be (B, D)")
        mu = x.mean(-1, keepdim=True)
        rstd = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + eps)
        ctx.save_for_backward(x, scale)
        ctx.eps = eps
        return (x - mu) * rstd * (1 + scale[:, None]) + shift[:, None]

    @staticmethod
    def backward(ctx, dy):
        x, scale = ctx.saved_tensors
        B, T, D = x.shape
        rows = x.reshape(B * T, D)
        dy = dy.view(B * T, D)
        mod = (1 + scale).repeat_interleave(T, dim=0)
        mu = rows.mean(-1, keepdim=True)
        rstd = torch.rsqrt(rows.var(-1, unbiased=False, keepdim=True) + ctx.eps)
        xhat = (rows - mu) * rstd
        dxhat = dy * mod
        dx = rstd * (dxhat - dxhat.mean(-1, keepdim=True) - xhat * (dxhat * xhat).mean(-1, keepdim=True))
        dshift = dy.reshape(B, T, D).sum(1)
        dscale = (dy * xhat).reshape(B, T, D).sum(1)
        return dx.reshape(B, T, D), dshift, dscale, None
