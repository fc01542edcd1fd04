import torch


class TrapezoidTransit(torch.autograd.Function):
    """Trapezoidal transit, out of transit one.

    Parameters
    ----------
    t : (n,) times
    t0, depth, duration, ingress : 0-dim
        Mid time, depth, duration from half ingress to half egress, and length of the
        ingress; ``0 < ingress < duration``.
    """

    @staticmethod
    def forward(ctx, t, t0, depth, duration, ingress):
        ctx.save_for_backward(t, t0, depth, duration, ingress)
        w = (duration / 2 + ingress / 2 - (t - t0).abs()) / ingress
        return 1 - depth * w.clamp(0, 1)

    @staticmethod
    def backward(ctx, grad):
        t, t0, depth, duration, ingress = ctx.saved_tensors
        w = (duration / 2 + ingress / 2 - (t - t0).abs()) / ingress
        sloped = (w > 0) & (w < 1)
        g_w = torch.where(sloped, -grad * depth / ingress, torch.zeros_like(grad))
        g_t = -g_w * (t - t0).sign()
        return g_t, -g_t.sum(), -(grad * w.clamp(0, 1)).sum(), g_w.sum() / 2, (g_w * (0.5 - w)).sum()
