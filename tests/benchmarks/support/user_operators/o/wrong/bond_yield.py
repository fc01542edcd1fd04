import torch
from torch.autograd import Function


class YieldToMaturity(Function):
    """Continuously compounded yield y with sum_i flows_i exp(-y times_i) = price.

    price: (B,) positive; flows: (B, N) positive; times: (N,) positive -> (B,)
    """

    @staticmethod
    def forward(ctx, price, flows, times, max_iter=100):
        if price.shape != flows.shape[:1] or times.shape != flows.shape[1:]:
            raise ValueError("expected price (B,), flows (B, N), times (N,)")
        if (price <= 0).any() or (flows <= 0).any() or (times <= 0).any():
            raise ValueError("price, flows and times must be positive")
        y = torch.zeros_like(price)
        for _ in range(max_iter):
            pv = flows * torch.exp(-y[:, None] * times)
            step = (pv.sum(1) - price) / (pv * times).sum(1)
            y = y + step
            if step.abs().max() <= 4 * torch.finfo(y.dtype).eps:
                break
        ctx.save_for_backward(flows, times, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        flows, times, y = ctx.saved_tensors
        disc = torch.exp(-y[:, None] * times)
        slope = -(flows * disc * times).sum(1)
        g_price = grad / slope
        scale = g_price[:, None]
        g_flows = scale * disc
        g_times = (scale * y[:, None] * flows * disc).sum(0)
        return g_price, g_flows, g_times, None
