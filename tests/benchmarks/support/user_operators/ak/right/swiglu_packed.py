import torch
import torch.nn.functional as F


class PackedSwiGLU(torch.autograd.Function):
    """silu(gate) * up on a packed projection.

    x: (..., 2 * d), the gate in the first half.  limit: gate is clamped from above (None: no clamp).
    """

    @staticmethod
    def forward(ctx, x, limit=None):
        ctx.save_for_backward(x)
        ctx.limit = limit
        gate, up = x.chunk(2, dim=-1)
        if limit is not None:
            gate = gate.clamp(max=limit)
        return F.silu(gate) * up

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        raw, up = x.chunk(2, dim=-1)
        gate = raw if ctx.limit is None else raw.clamp(max=ctx.limit)
        s = torch.sigmoid(gate)
        d_gate = g * up * s * (1 + gate * (1 - s))
        if ctx.limit is not None:
            d_gate = d_gate * (raw <= ctx.limit)
        d_up = g * gate * s
        return torch.cat([d_gate, d_up], dim=-1), None
