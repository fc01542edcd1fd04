import torch
from torch.autograd import Function


class YangZhangVariance(Function):
    @staticmethod
    def forward(ctx, open_, high, low, close):
        n = open_.size(-1) - 1
        if n < 2:
            raise ValueError("needs three bars")
        k = 0.34 / (1.34 + (n + 1) / (n - 1))
        ctx.save_for_backward(open_, high, low, close)
        o, h, l, c = open_[..., 1:], high[..., 1:], low[..., 1:], close[..., 1:]
        overnight = o - close[..., :-1]
        session = c - o
        rs = (h - c) * (h - o) + (l - c) * (l - o)
        return overnight.var(-1) + k * session.var(-1) + (1 - k) * rs.mean(-1)

    @staticmethod
    def backward(ctx, grad):
        open_, high, low, close = ctx.saved_tensors
        n = open_.size(-1) - 1
        k = 0.34 / (1.34 + (n + 1) / (n - 1))
        o, h, l, c = open_[..., 1:], high[..., 1:], low[..., 1:], close[..., 1:]
        g = grad[..., None]
        overnight = o - close[..., :-1]
        session = c - o
        g_overnight = g * 2 * (overnight - overnight.mean(-1, keepdim=True)) / (n - 1)
        g_session = g * k * 2 * (session - session.mean(-1, keepdim=True)) / (n - 1)
        g_rs = g * (1 - k) / n
        g_open = g_overnight - g_session - g_rs * (h + l - 2 * c)
        g_high = g_rs * (2 * h - c - o)
        g_low = g_rs * (2 * l - c - o)
        g_close = g_session - g_rs * (h + l - 2 * o)
        first = torch.zeros_like(g_open[..., :1])
        grad_close = torch.cat([first, g_close - g_overnight], -1)
        return (
            torch.cat([first, g_open], -1),
            torch.cat([first, g_high], -1),
            torch.cat([first, g_low], -1),
            grad_close,
        )
