import torch


class LambertW(torch.autograd.Function):
    """Principal branch of w exp(w) = x for x > 0 by Halley's iteration."""

    @staticmethod
    def forward(ctx, x):
        w = torch.log1p(x)
        for _ in range(20):
            e = w.exp()
            f = w * e - x
            w = w - f / (e * (w + 1) - (w + 2) * f / (2 * w + 2))
        ctx.save_for_backward(w.clone())
        return w

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        return g * torch.exp(-w) / (1 + w)
