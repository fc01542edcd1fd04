import torch


class ClampedSwiGLU(torch.autograd.Function):
    # x: (..., 2 * d) with gate and up interleaved
    @staticmethod
    def forward(ctx, x, alpha=1.702, limit=7.0):
        ctx.save_for_backward(x)
        ctx.alpha, ctx.limit = alpha, limit
        gate = x[..., ::2].clamp(max=limit)
        up = x[..., 1::2].clamp(-limit, limit)
        return gate * torch.sigmoid(alpha * gate) * (up + 1)

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        alpha, limit = ctx.alpha, ctx.limit
        raw_gate, raw_up = x[..., ::2], x[..., 1::2]
        gate = raw_gate.clamp(max=limit)
        up = raw_up.clamp(-limit, limit)
        sig = torch.sigmoid(alpha * gate)
        dgate = dy * (up + 1) * (sig + alpha * gate * sig * (1 - sig))
        dup = dy * gate * sig
        dgate = dgate * (raw_gate <= limit)
        dup = dup * (raw_up.abs() <= limit)
        return torch.stack([dgate, dup], dim=-1).flatten(-2), None, None
