import torch


class KeplerE(torch.autograd.Function):
    """Eccentric anomaly from mean anomaly and eccentricity (0 <= e < 1): E - e sin E = M."""

    @staticmethod
    def forward(ctx, M, e):
        E = M + e * torch.sin(M)
        for _ in range(30):
            E = E - (E - e * E.sin() - M) / (1 - e * E.cos())
        ctx.save_for_backward(E, e)
        ctx.shape = M.shape
        return E

    @staticmethod
    def backward(ctx, gE):
        E, e = ctx.saved_tensors
        gM = gE / (1 - e * E.cos())
        return gM.sum_to_size(ctx.shape), (gM * E.sin()).sum_to_size(e.shape)
