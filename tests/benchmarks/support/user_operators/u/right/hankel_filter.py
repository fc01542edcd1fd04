import torch


class HankelFilter(torch.autograd.Function):
    """y = H(x) k with the Hankel (trajectory) matrix of a series.

    x: (T,) series, k: (L,) with L <= T; returns (T - L + 1,)
    """

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x, k)
        return x.unfold(0, len(k), 1) @ k

    @staticmethod
    def backward(ctx, g):
        x, k = ctx.saved_tensors
        L = len(k)
        H = x.unfold(0, L, 1)
        lag = torch.arange(len(g), device=g.device)[:, None] + torch.arange(L, device=g.device)
        gx = torch.zeros_like(x).index_add(0, lag.flatten(), (g[:, None] * k).flatten())
        return gx, H.t() @ g
