import torch


class Kepler(torch.autograd.Function):
    @staticmethod
    def forward(ctx, M, e, iters=12):
        E = M + e * torch.sin(M)
        for _ in range(iters):
            E = E - (E - e * E.sin() - M) / (1 - e * E.cos())
        ctx.save_for_backward(E, e)
        ctx.sh = M.shape
        return E

    @staticmethod
    def backward(ctx, g):
        E, e = ctx.saved_tensors
        gM = g / (1 - e * E.cos())
        ge = gM * E.sin()
        return gM.sum_to_size(ctx.sh), ge.sum_to_size(e.shape), None


def kepler(M, e, iters=12):
    # elliptic orbits, 0 <= e < 0.9
    return Kepler.apply(M, e, iters)
