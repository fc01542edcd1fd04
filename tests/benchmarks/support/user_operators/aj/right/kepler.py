import torch


class EccentricAnomaly(torch.autograd.Function):
    """Solves E - e sin E = M by Newton. M, e of the same shape, 0 <= e < 1."""

    @staticmethod
    def forward(ctx, M, e, iters=30):
        E = M + e * torch.sin(M)
        for _ in range(iters):
            E = E - (E - e * torch.sin(E) - M) / (1 - e * torch.cos(E))
        ctx.save_for_backward(e, E)
        return E

    @staticmethod
    def backward(ctx, g):
        e, E = ctx.saved_tensors
        gM = g / (1 - e * torch.cos(E))
        return gM, gM * torch.sin(E), None
