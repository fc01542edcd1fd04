import torch


class GromovCost(torch.autograd.Function):
    """sum_{ijkl} (C1[i,k] - C2[j,l])^2 T[i,j] T[k,l] for any cost matrices (directed graphs too)."""

    @staticmethod
    def forward(ctx, C1, C2, T):
        ctx.save_for_backward(C1, C2, T)
        p, q = T.sum(1), T.sum(0)
        const = p @ C1.square() @ p + q @ C2.square() @ q
        return const - 2 * ((C1 @ T @ C2.t()) * T).sum()

    @staticmethod
    def backward(ctx, g):
        C1, C2, T = ctx.saved_tensors
        p, q = T.sum(1), T.sum(0)
        gC1 = 2 * C1 * torch.outer(p, p) - 2 * T @ C2 @ T.t()
        gC2 = 2 * C2 * torch.outer(q, q) - 2 * T.t() @ C1 @ T
        sq1, sq2 = C1.square(), C2.square()
        gT = ((sq1 + sq1.t()) @ p)[:, None] + ((sq2 + sq2.t()) @ q)[None]
        gT = gT - 4 * C1 @ T @ C2.t()
        return g * gC1, g * gC2, g * gT
