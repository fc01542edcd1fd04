import torch


class BarlowTwinsLoss(torch.autograd.Function):
    """Redundancy reduction loss on embeddings that the caller has standardised."""

    @staticmethod
    def forward(ctx, za, zb, lambd):
        if za.is_complex() or za.shape != zb.shape:
            raise ValueError("two real (N, D) views of the same batch")
        ctx.save_for_backward(za, zb)
        ctx.lambd = lambd
        c = za.T @ zb / za.shape[0]
        on = ((c.diagonal() - 1) ** 2).sum()
        off = (c ** 2).sum() - (c.diagonal() ** 2).sum()
        return on + lambd * off

    @staticmethod
    def backward(ctx, g):
        za, zb = ctx.saved_tensors
        n, d = za.shape
        c = za.T @ zb / n
        eye = torch.eye(d, dtype=c.dtype, device=c.device)
        gc = 2 * g * (eye * (c - 1) + ctx.lambd * (1 - eye) * c) / n
        return zb @ gc.T, za @ gc, None
