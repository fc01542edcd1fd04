import torch
from torch.autograd import Function


class KeplerSolve(Function):
    """Eccentric anomaly E from M = E - e sin E (Newton).

    M: mean anomaly [rad], any shape; ecc: broadcastable to M, 0 <= ecc < 1.
    Gradients come from the implicit function theorem, the iterations are not unrolled.
    """

    @staticmethod
    def forward(ctx, M, ecc, tol=1e-13, max_iter=50):
        e = ecc.expand_as(M)
        E = M + 0.85 * e * torch.sign(torch.sin(M))
        for _ in range(max_iter):
            f = E - e * torch.sin(E) - M
            step = f / (1 - e * torch.cos(E))
            E = E - step
            if step.abs().max() < tol:
                break
        ctx.save_for_backward(E, e)
        ctx.ecc_shape = ecc.shape
        return E

    @staticmethod
    def backward(ctx, gE):
        E, e = ctx.saved_tensors
        gM = gE / (1 - e * torch.cos(E))
        ge = (gE * torch.sin(E)).sum_to_size(ctx.ecc_shape)
        return gM, ge, None, None
