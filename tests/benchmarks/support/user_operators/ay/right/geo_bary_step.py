import torch


class GeometricBarycenter(torch.autograd.Function):
    # KU (S, N) positive marginals, lam (S,) weights -> (N,)
    @staticmethod
    def forward(ctx, KU, lam):
        logs = KU.log()
        bary = (lam @ logs).exp()
        ctx.save_for_backward(KU, lam, bary)
        return bary

    @staticmethod
    def backward(ctx, g):
        KU, lam, bary = ctx.saved_tensors
        logs = KU.log()
        gb = g * bary
        return lam[:, None] * gb / KU, logs @ gb
