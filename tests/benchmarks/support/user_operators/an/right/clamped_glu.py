import torch
from torch.autograd.function import once_differentiable


class ClampedGLU(torch.autograd.Function):
    """(..., 2D) with gate/up interleaved -> (..., D);  out = (up + 1) * gate * sigmoid(alpha * gate)"""

    @staticmethod
    def forward(ctx, x, alpha=1.702, limit=7.0):
        ctx.save_for_backward(x)
        ctx.alpha, ctx.limit = alpha, limit
        gate = x[..., ::2].clamp(max=limit)
        up = x[..., 1::2].clamp(-limit, limit)
        return (up + 1) * gate * torch.sigmoid(alpha * gate)

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        x, = ctx.saved_tensors
        x = x.to(dout.dtype)
        raw_g, raw_u = x[..., ::2], x[..., 1::2]
        gate = raw_g.clamp(max=ctx.limit)
        up = raw_u.clamp(-ctx.limit, ctx.limit)
        sig = torch.sigmoid(ctx.alpha * gate)
        dgate = dout * (up + 1) * sig * (1 + ctx.alpha * gate * (1 - sig)) * (raw_g <= ctx.limit)
        dup = dout * gate * sig * (raw_u.abs() <= ctx.limit)
        dx = torch.empty_like(x)
        dx[..., ::2] = dgate
        dx[..., 1::2] = dup
        return dx, None, None
