import torch
from torch.autograd import Function


class KeplerSolve(Function):
    """Eccentric anomaly E of  E - e sin E = M;  M and e of one shape, 0 <= e < 1."""

    @staticmethod
    def forward(ctx, M, e, max_iter=60, tol=1e-15):
        E = M + e * torch.sin(M)
        for _ in range(max_iter):
            f = E - e * torch.sin(E) - M
            step = f / (1 - e * torch.cos(E))
            E = E - step
            if step.abs().max() < tol:
                break
        ctx.save_for_backward(e, E)
        return E

    @staticmethod
    def backward(ctx, grad):
        e, E = ctx.saved_tensors
        g = grad / (1 - e * torch.cos(E))
        return g, g * torch.sin(E), None
