import torch
from torch.autograd.function import once_differentiable


class _TriSolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, B, upper, transpose, unit):
        M, up = (A.mT, not upper) if transpose else (A, upper)
        X = torch.linalg.solve_triangular(M, B, upper=up, unitriangular=unit)
        ctx.save_for_backward(A, X)
        ctx.flags = upper, transpose, unit
        return X

    @staticmethod
    @once_differentiable
    def backward(ctx, gX):
        A, X = ctx.saved_tensors
        upper, transpose, unit = ctx.flags
        M, up = (A, upper) if transpose else (A.mT, not upper)
        gB = torch.linalg.solve_triangular(M, gX, upper=up, unitriangular=unit)
        gA = -(X @ gB.mT) if transpose else -(gB @ X.mT)
        k = 1 if unit else 0
        gA = gA.triu(k) if upper else gA.tril(-k)
        return gA, gB, None, None, None


def tri_solve(A, B, *flags, upper=False, transpose=False, unitriangular=False):
    """Solve op(A) X = B for a triangular A; only its triangle is read.

    flags are (upper, transpose, unitriangular) when given by position.
    """
    if flags:
        upper, transpose, unitriangular = (tuple(flags) + (False,) * 3)[:3]
    vector = B.dim() == 1
    X = _TriSolve.apply(A, B.unsqueeze(-1) if vector else B, upper, transpose, unitriangular)
    return X.squeeze(-1) if vector else X
