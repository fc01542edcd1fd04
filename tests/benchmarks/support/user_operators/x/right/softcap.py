import torch


class _SoftcapGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, x, cap):
        t = torch.tanh(x / cap)
        ctx.save_for_backward(g, x)
        ctx.cap = cap
        return g * (1 - t * t)

    @staticmethod
    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        t = torch.tanh(x / ctx.cap)
        d = 1 - t * t
        return gg * d, -2 * gg * g * t * d / ctx.cap, None


class SoftcapScores(torch.autograd.Function):
    """cap * tanh(x / cap) on attention logits; masked places (mask False) become `fill`."""

    @staticmethod
    def forward(ctx, x, mask, cap=50.0, fill=-1e4):
        ctx.save_for_backward(x, mask)
        ctx.cap = cap
        y = cap * torch.tanh(x / cap)
        return torch.where(mask, y, torch.full_like(y, fill))

    @staticmethod
    def backward(ctx, g):
        x, mask = ctx.saved_tensors
        g = g.masked_fill(~mask, 0.0)
        return _SoftcapGrad.apply(g, x, ctx.cap), None, None, None
