import torch


class MaxDrawdown(torch.autograd.Function):
    # price (B, T) -> largest relative loss from a running peak (B,), index of that peak, index of the trough

    @staticmethod
    def forward(ctx, price):
        peak, at = torch.cummax(price, 1)
        mdd, trough = (1 - price / peak).max(1)
        top = at.gather(1, trough[:, None]).squeeze(1)
        ctx.save_for_backward(price, top, trough)
        ctx.mark_non_differentiable(top, trough)
        return mdd, top, trough

    @staticmethod
    def backward(ctx, g, *_):
        price, top, trough = ctx.saved_tensors
        top, trough = top[:, None], trough[:, None]
        hi, lo = price.gather(1, top), price.gather(1, trough)
        grad = torch.zeros_like(price)
        grad = grad.scatter_add(1, trough, -g[:, None] / hi)
        return grad.scatter_add(1, top, g[:, None] * lo / hi ** 2)
