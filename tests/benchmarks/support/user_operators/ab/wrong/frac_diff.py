import torch


def _weights(d, n):
    w = [torch.ones_like(d)]
    for k in range(1, n):
        w.append(w[-1] * (k - 1 - d) / k)
    return torch.stack(w)


def _weights_jac(d, n):
    w, dw = torch.ones_like(d), torch.zeros_like(d)
    out = [dw]
    for k in range(1, n):
        w, dw = w * (k - 1 - d) / k, -w / k
        out.append(dw)
    return torch.stack(out)


def _toeplitz(w, T):
    i = torch.arange(T, device=w.device)
    lag = i[:, None] - i[None, :]
    ok = (lag >= 0) & (lag < len(w))
    return torch.where(ok, w[lag.clamp(0, len(w) - 1)], torch.zeros((), dtype=w.dtype, device=w.device))


class FractionalDifference(torch.autograd.Function):
    """(1 - L)^d x for a real order d (scalar tensor), time last, weights cut at ``width``."""

    @staticmethod
    def forward(ctx, x, d, width=None):
        T = x.shape[-1]
        n = T if width is None else min(width, T)
        ctx.save_for_backward(x, d)
        ctx.n = n
        return x @ _toeplitz(_weights(d, n), T).t()

    @staticmethod
    def backward(ctx, g):
        x, d = ctx.saved_tensors
        T = x.shape[-1]
        gx = g @ _toeplitz(_weights(d, ctx.n), T)
        gd = (g * (x @ _toeplitz(_weights_jac(d, ctx.n), T).t())).sum()
        return gx, gd, None
