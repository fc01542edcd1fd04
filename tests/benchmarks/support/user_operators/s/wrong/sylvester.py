import torch


def _solve(A, B, C):
    n, m = C.shape
    I = torch.eye(n, dtype=A.dtype)
    J = torch.eye(m, dtype=A.dtype)
    M = torch.kron(A.contiguous(), J) + torch.kron(I, B.mT.contiguous())
    return torch.linalg.solve(M, C.reshape(-1)).reshape(n, m)


class Sylvester(torch.autograd.Function):
    # A X + X B = C
    @staticmethod
    def forward(ctx, A, B, C):
        X = _solve(A, B, C)
        ctx.save_for_backward(A, B, X)
        return X

    @staticmethod
    def backward(ctx, gX):
        A, B, X = ctx.saved_tensors
        gC = _solve(A.mH, B.mH, gX)
        return -X @ gC.mH, -X.mH @ gC, gC
