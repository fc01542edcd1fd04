import torch
from torch.autograd.function import once_differentiable


def copyltu(M):
    """symmetric matrix from the lower triangle"""
    return M.tril() + M.tril(-1).mT


class ThinQR(torch.autograd.Function):
    """A (m, n), m >= n of full rank -> Q (m, n), R (n, n) with a positive diagonal"""

    @staticmethod
    def forward(ctx, A):
        Q, R = torch.linalg.qr(A)
        s = torch.where(R.diagonal() < 0, -1.0, 1.0).to(A.dtype)
        Q, R = Q * s, R * s[:, None]
        ctx.save_for_backward(Q, R)
        return Q, R

    @staticmethod
    @once_differentiable
    def backward(ctx, gQ, gR):
        Q, R = ctx.saved_tensors
        M = R @ gR.mT - gQ.mT @ Q
        rhs = gQ + Q @ copyltu(M)
        # rhs R^-T
        return torch.linalg.solve_triangular(R, rhs.mT, upper=True).mT
