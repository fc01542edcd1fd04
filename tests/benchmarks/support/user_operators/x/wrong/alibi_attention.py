import torch
from torch.autograd.function import once_differentiable


class AlibiAttention(torch.autograd.Function):
    """Causal attention with ALiBi.

    q, k, v   [batch, heads, time, dim]
    slopes    [heads], learnable
    """

    @staticmethod
    def forward(ctx, q, k, v, slopes):
        t = q.shape[-2]
        pos = torch.arange(t, device=q.device)
        dist = (pos[:, None] - pos[None]).to(q.dtype)
        scale = q.shape[-1] ** -0.5
        scores = q @ k.transpose(-1, -2) * scale - slopes[:, None, None] * dist
        scores = scores.masked_fill(dist < 0, float("-inf"))
        attn = scores.softmax(-1)
        ctx.save_for_backward(q, k, v, attn, dist)
        ctx.scale = scale
        return attn @ v

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        q, k, v, attn, dist = ctx.saved_tensors
        dv = attn.transpose(-1, -2) @ do
        dp = do @ v.transpose(-1, -2)
        ds = attn * (dp - (dp * attn).sum(-1, keepdim=True))
        dslopes = -(ds * dist).sum((0, 2, 3))
        dq = ds @ k * ctx.scale
        dk = ds.transpose(-1, -2) @ q
        return dq, dk, dv, dslopes
