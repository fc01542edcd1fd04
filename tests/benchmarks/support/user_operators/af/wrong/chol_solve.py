import torch
from torch.autograd.function import once_differentiable


class CholeskySolve(torch.autograd.Function):
    """X = A^-1 B with A = L L^T, or A = U^T U when upper. B (n, k), factor (n, n)."""

    @staticmethod
    def forward(ctx, B, factor, upper=False):
        X = torch.cholesky_solve(B, factor, upper=upper)
        ctx.save_for_backward(factor, X)
        ctx.upper = upper
        return X

    @staticmethod
    @once_differentiable
    def backward(ctx, gX):
        factor, X = ctx.saved_tensors
        gB = torch.cholesky_solve(gX, factor, upper=ctx.upper)
        g_factor = None
        if ctx.needs_input_grad[1]:
            gA = -gB @ X.mT
            sym = gA + gA.mT
            if ctx.upper:
                g_factor = (sym @ factor).triu()
            else:
                g_factor = (sym @ factor).tril()
        return gB, g_factor, None
