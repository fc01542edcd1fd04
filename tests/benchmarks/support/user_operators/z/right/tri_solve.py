import torch


class TriSolve(torch.autograd.Function):
    """Solve op(T) x = b with a triangular T.

    T: (..., n, n), only the named triangle is read
    b: (..., n, k)
    upper: which triangle
    transpose: op is the transpose
    unit: the diagonal is taken as ones and not read
    """

    @staticmethod
    def forward(ctx, T, b, upper=False, transpose=False, unit=False):
        M = T.mT if transpose else T
        x = torch.linalg.solve_triangular(M, b, upper=upper != transpose, unitriangular=unit)
        ctx.save_for_backward(T, x)
        ctx.opts = (upper, transpose, unit)
        return x

    @staticmethod
    def backward(ctx, grad):
        T, x = ctx.saved_tensors
        upper, transpose, unit = ctx.opts
        M = T if transpose else T.mT
        gb = torch.linalg.solve_triangular(M, grad, upper=upper == transpose, unitriangular=unit)
        gT = None
        if ctx.needs_input_grad[0]:
            gT = -(x @ gb.mT if transpose else gb @ x.mT)
            k = 1 if unit else 0
            gT = gT.triu(k) if upper else gT.tril(-k)
        return gT, gb, None, None, None
