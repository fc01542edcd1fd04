import torch


class MaxDrawdown(torch.autograd.Function):
    """Largest relative fall from a running peak, per path of prices (B, T)."""

    @staticmethod
    def forward(ctx, prices):
        peak, where = prices.cummax(dim=1)
        dd = 1 - prices / peak
        value, trough = dd.max(dim=1, keepdim=True)
        top = where.gather(1, trough)
        ctx.save_for_backward(prices, top, trough)
        return value.squeeze(1)

    @staticmethod
    def backward(ctx, grad):
        prices, top, trough = ctx.saved_tensors
        hi, lo = prices.gather(1, top), prices.gather(1, trough)
        g = grad.unsqueeze(1)
        out = torch.zeros_like(prices)
        return out.scatter_add(1, trough, -g / hi)
