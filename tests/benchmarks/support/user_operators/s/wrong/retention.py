import torch


class Retention(torch.autograd.Function):
    """Parallel form of RetNet's retention.  q, k: (H, T, d), v: (H, T, e), gamma: (H,) in (0, 1]."""

    @staticmethod
    def forward(ctx, q, k, v, gamma):
        ctx.save_for_backward(q, k, v, gamma)
        lag, tri = Retention.lags(q)
        D = gamma[:, None, None] ** lag * tri
        return (q @ k.mT * D) @ v

    @staticmethod
    def lags(q):
        t = torch.arange(q.shape[-2], device=q.device)
        d = t[:, None] - t
        return d.clamp(min=0), (d >= 0).to(q.dtype)

    @staticmethod
    def backward(ctx, grad):
        q, k, v, gamma = ctx.saved_tensors
        lag, tri = Retention.lags(q)
        gam = gamma[:, None, None]
        D = gam**lag * tri
        S = q @ k.mT
        dP = grad @ v.mT
        dS = dP * D
        dD = lag * D
        return dS @ k, dS.mT @ q, (S * D).mT @ grad, (dP * S * dD).sum((-2, -1))
