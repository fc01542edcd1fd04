import torch


class ClampedSwiGLU(torch.autograd.Function):
    """SwiGLU on an interleaved (gate, up, gate, up, ...) projection, with clamped branches.

    The gate is limited from above only, the linear branch on both sides.
    x: (..., 2 * d)  ->  (..., d)
    """

    @staticmethod
    def forward(ctx, x, alpha=1.702, limit=7.0):
        gate, up = x[..., ::2], x[..., 1::2]
        gate = gate.clamp(max=limit)
        up = up.clamp(min=-limit, max=limit)
        ctx.save_for_backward(x)
        ctx.alpha, ctx.limit = alpha, limit
        return gate * torch.sigmoid(alpha * gate) * (up + 1)

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        alpha, limit = ctx.alpha, ctx.limit
        raw_gate, raw_up = x[..., ::2], x[..., 1::2]
        gate = raw_gate.clamp(max=limit)
        up = raw_up.clamp(min=-limit, max=limit)
        sig = torch.sigmoid(alpha * gate)
        d_gate = grad_out * (up + 1) * sig * (1 + alpha * gate * (1 - sig))
        d_up = grad_out * gate * sig
        d_gate = d_gate.masked_fill(raw_gate > limit, 0.0)
        d_up = d_up.masked_fill(raw_up.abs() > limit, 0.0)
        return torch.stack([d_gate, d_up], dim=-1).flatten(-2), None, None
