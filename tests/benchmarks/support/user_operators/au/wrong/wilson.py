import torch


class WilsonLnGamma(torch.autograd.Function):
    """ln gamma of the Wilson model; x (B, C), Lam (C, C) with ones on the diagonal."""

    @staticmethod
    def forward(ctx, x, Lam):
        ctx.save_for_backward(x, Lam)
        s = x @ Lam.T
        return 1 - torch.log(s) - (x / s) @ Lam

    @staticmethod
    def backward(ctx, g):
        x, Lam = ctx.saved_tensors
        s = x @ Lam.T
        q = x / s
        gq = -g @ Lam.T
        gs = -g / s - gq * q / s
        gx = gq / s + gs @ Lam.T
        gLam = gs.T @ x - q.T @ g
        return gx, gLam
