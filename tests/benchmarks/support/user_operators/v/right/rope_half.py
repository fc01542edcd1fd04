import torch


class RotaryHalf(torch.autograd.Function):
    """GPT-NeoX style rotary embedding.

    x: (batch, seq, heads, dim) with even dim; start: number of tokens already in the KV cache.
    """

    @staticmethod
    def tables(x, start, base):
        half = x.shape[-1] // 2
        inv = base ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
        t = torch.arange(start, start + x.shape[1], dtype=torch.float64, device=x.device)
        ang = (t[:, None] * inv)[:, None, :]
        return ang.cos().to(x.dtype), ang.sin().to(x.dtype)

    @staticmethod
    def forward(ctx, x, start=0, base=10000.0):
        ctx.start, ctx.base = start, base
        cos, sin = RotaryHalf.tables(x, start, base)
        x1, x2 = x.chunk(2, -1)
        return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], -1)

    @staticmethod
    def backward(ctx, dy):
        cos, sin = RotaryHalf.tables(dy, ctx.start, ctx.base)
        y1, y2 = dy.chunk(2, -1)
        return torch.cat([y1 * cos + y2 * sin, y2 * cos - y1 * sin], -1), None, None
