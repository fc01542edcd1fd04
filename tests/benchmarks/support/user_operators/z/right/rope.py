import torch


class RotaryEmbedding(torch.autograd.Function):
    """Rotary position embedding, neighbouring pairs; x (B, H, T, D), positions (T,) or (B, T)"""

    @staticmethod
    def forward(ctx, x, positions, base=10000.0):
        half = x.shape[-1] // 2
        freq = base ** (-torch.arange(half, dtype=x.dtype, device=x.device) / half)
        angle = positions.to(x.dtype).unsqueeze(-1) * freq
        if positions.dim() == 2:
            angle = angle.unsqueeze(1)
        cos, sin = angle.cos(), angle.sin()
        ctx.save_for_backward(cos, sin)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

    @staticmethod
    def backward(ctx, grad):
        cos, sin = ctx.saved_tensors
        a, b = grad[..., 0::2], grad[..., 1::2]
        out = torch.empty_like(grad)
        out[..., 0::2] = a * cos + b * sin
        out[..., 1::2] = b * cos - a * sin
        return out, None, None
