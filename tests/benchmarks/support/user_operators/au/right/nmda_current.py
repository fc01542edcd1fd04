import torch


class NMDACurrent(torch.autograd.Function):
    """v (N,) mV, s (N, S) open fractions, gbar (S,) nS, mg scalar mM -> current (N,)"""

    @staticmethod
    def forward(ctx, v, s, gbar, mg, e_rev=0.0):
        ctx.save_for_backward(v, s, gbar, mg)
        ctx.e_rev = e_rev
        block = 1 / (1 + mg / 3.57 * torch.exp(-0.062 * v))
        return (s @ gbar) * block * (v - e_rev)

    @staticmethod
    def backward(ctx, grad):
        v, s, gbar, mg = ctx.saved_tensors
        ex = torch.exp(-0.062 * v) / 3.57
        block = 1 / (1 + mg * ex)
        drive = v - ctx.e_rev
        total = s @ gbar
        grad_v = grad * total * (block + 0.062 * drive * block * (1 - block))
        per = grad * block * drive
        grad_mg = -(per * total * block * ex).sum()
        return grad_v, per[:, None] * gbar, per @ s, grad_mg, None
