import torch


class GeometricBarycenter(torch.autograd.Function):
    # KU (S, N) positive marginals, lam (S,) weights -> (N,)
    @staticmethod
    def forward(ctx, KU, lam):
        logs = KU.log()
        bary = (lam @ logs).exp()
        ctx.save_for_backward(KU, lam, bary, logs)
        return bary

    @staticmethod
    def backward(ctx, g):
        KU, lam, bary, logs = ctx.saved_tensors
        gb = g * bary
        return lam[:, None] * gb / KU, logs @ gb
