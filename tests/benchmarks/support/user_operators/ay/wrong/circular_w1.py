import torch


class CircularW1(torch.autograd.Function):
    # p, q (B, N) histograms on the circle -> (B,)
    @staticmethod
    def forward(ctx, p, q):
        D = (p - q).cumsum(-1)
        med, at = D.median(-1, keepdim=True)
        ctx.save_for_backward(D - med, at)
        return (D - med).abs().sum(-1)

    @staticmethod
    def backward(ctx, g):
        E, at = ctx.saved_tensors
        s = E.sign()
        gp = g[..., None] * s.flip(-1).cumsum(-1).flip(-1)
        return gp, -gp
