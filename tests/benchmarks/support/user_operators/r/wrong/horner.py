import torch


class Horner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, c, z):
        ctx.save_for_backward(c, z)
        p = torch.zeros_like(z)
        for k in range(c.shape[0] - 1, -1, -1):
            p = p * z + c[k]
        return p

    @staticmethod
    def backward(ctx, g):
        c, z = ctx.saved_tensors
        gc, zk, d = [], torch.ones_like(z), torch.zeros_like(z)
        for k in range(c.shape[0]):
            gc.append((g * zk.conj()).sum())
            if k + 1 < c.shape[0]:
                d = d + (k + 1) * c[k + 1] * zk
            zk = zk * z
        return torch.stack(gc), g * d


def polyval(c, z):
    # lowest order first, c and z of one dtype
    return Horner.apply(c, z)
