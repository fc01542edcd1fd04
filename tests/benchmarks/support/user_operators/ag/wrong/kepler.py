import torch
from torch.autograd import Function


class _Kepler(Function):
    @staticmethod
    def forward(ctx, M, e, iters):
        M_, e_ = torch.broadcast_tensors(M, e)
        E = M_ + e_ * torch.sin(M_)
        for _ in range(iters):
            E = E - (E - e_ * torch.sin(E) - M_) / (1 - e_ * torch.cos(E))
        ctx.save_for_backward(M, e, E)
        return E

    @staticmethod
    def backward(ctx, g):
        M, e, E = ctx.saved_tensors
        gM = g / (1 - e * torch.cos(E))
        ge = gM * torch.sin(M)
        return gM.sum_to_size(M.shape), ge.sum_to_size(e.shape), None


def true_anomaly(M, e, iters=20):
    """True anomaly for mean anomaly M and eccentricity 0 <= e < 1 (shapes broadcast)."""
    E = _Kepler.apply(M, e, iters)
    return 2 * torch.atan2((1 + e).sqrt() * (E / 2).sin(), (1 - e).sqrt() * (E / 2).cos())
