"""Small dense linear algebra with explicit gradients."""
import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable


class CholeskyFn(Function):
    """Lower Cholesky factor of the symmetric part of A (Murray, 2016)."""

    @staticmethod
    def forward(ctx, A):
        L = torch.linalg.cholesky(0.5 * (A + A.mT))
        ctx.save_for_backward(L)
        return L

    @staticmethod
    def backward(ctx, gL):
        L, = ctx.saved_tensors
        P = torch.tril(L.mT @ gL)
        P = P - 0.5 * torch.diag_embed(torch.diagonal(P, dim1=-2, dim2=-1))
        S = torch.linalg.solve_triangular(L.mT, P, upper=True)
        S = torch.linalg.solve_triangular(L, S, upper=False, left=False)
        return 0.5 * (S + S.mT)


class SolveFn(Function):
    @staticmethod
    def forward(A: Tensor, B: Tensor) -> Tensor:
        return torch.linalg.solve(A, B)

    @staticmethod
    def setup_context(ctx, inputs, output):
        A, _ = inputs
        ctx.save_for_backward(A, output)

    @staticmethod
    def backward(ctx, grad_X):
        A, X = ctx.saved_tensors
        grad_B = torch.linalg.solve(A.mT, grad_X)
        grad_A = -grad_B @ X.mT
        return grad_A, grad_B


def solve(A: Tensor, B: Tensor) -> Tensor:
    """A (n, n), B (n, k)."""
    return SolveFn.apply(A, B)


class LogDetSPD(Function):
    """log det of a batch of symmetric positive definite matrices."""

    @staticmethod
    def forward(ctx, cov):
        if cov.size(-1) != cov.size(-2):
            raise ValueError("square matrices expected")
        sym = (cov + cov.transpose(-1, -2)) / 2
        chol = torch.linalg.cholesky(sym)
        ctx.save_for_backward(cov)
        return 2 * chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    @staticmethod
    def backward(ctx, grad):
        cov, = ctx.saved_tensors
        sym = (cov + cov.transpose(-1, -2)) / 2
        inv = torch.linalg.inv(sym)
        return inv * grad[..., None, None]


class SqrtmSPD(Function):
    """Principal square root of an SPD matrix, with LAPACK through numpy."""

    @staticmethod
    def forward(ctx, M):
        arr = M.detach().cpu().numpy()
        w, V = np.linalg.eigh((arr + arr.T) / 2)
        if w[0] <= 0:
            raise ValueError("matrix is not positive definite")
        s = torch.from_numpy(np.sqrt(w)).to(M)
        V = torch.from_numpy(V).to(M)
        ctx.save_for_backward(s, V)
        return (V * s) @ V.t()

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        s, V = ctx.saved_tensors
        inner = V.t() @ (G + G.t()) @ V / 2
        inner = inner / (s.unsqueeze(0) + s.unsqueeze(1))
        return V @ inner @ V.t()


class InverseFn(Function):
    @staticmethod
    def forward(ctx, A):
        inv = torch.linalg.inv(A)
        ctx.save_for_backward(inv)
        return inv

    @staticmethod
    def backward(ctx, grad_output):
        inv, = ctx.saved_tensors
        inv_t = inv.transpose(-2, -1)
        return -inv_t @ grad_output @ inv_t


class MahalanobisSq(Function):
    """|| L^-1 (x - mu) ||^2 for rows x (N, D), mean (D,), lower triangular factor L (D, D)."""

    @staticmethod
    def forward(ctx, x, mu, L):
        z = torch.linalg.solve_triangular(L, (x - mu).t(), upper=False)
        ctx.save_for_backward(x, mu, L)
        return z.pow(2).sum(0)

    @staticmethod
    def backward(ctx, g):
        x, mu, L = ctx.saved_tensors
        z = torch.linalg.solve_triangular(L, (x - mu).t(), upper=False)
        u = torch.linalg.solve_triangular(L.t(), z, upper=True)
        gx = (2 * g * u).t()
        gmu = -gx.sum(0)
        gL = -torch.tril((2 * g * u) @ z.t())
        return gx, gmu, gL


class TriangularSolve(Function):
    @staticmethod
    def forward(ctx, T, B, upper=False):
        X = torch.linalg.solve_triangular(T, B, upper=upper)
        ctx.upper = upper
        ctx.save_for_backward(T, X)
        return X

    @staticmethod
    def backward(ctx, gX):
        T, X = ctx.saved_tensors
        gB = torch.linalg.solve_triangular(T.mT, gX, upper=not ctx.upper)
        gT = -gB @ X.mT
        gT = torch.triu(gT) if ctx.upper else torch.tril(gT)
        return gT, gB, None


class CayleyOrthogonal(Function):
    """Orthogonal matrix (I + S)^-1 (I - S) from any square W, with S = W - W^T."""

    @staticmethod
    def forward(ctx, W):
        assert W.dim() == 2 and W.shape[0] == W.shape[1]
        S = W - W.t()
        I = torch.eye(W.shape[0], dtype=W.dtype, device=W.device)
        Q = torch.linalg.solve(I + S, I - S)
        ctx.save_for_backward(W, Q)
        return Q

    @staticmethod
    def backward(ctx, gQ):
        W, Q = ctx.saved_tensors
        S = W - W.t()
        I = torch.eye(W.shape[0], dtype=W.dtype, device=W.device)
        gS = -torch.linalg.solve((I + S).t(), gQ) @ (Q + I).t()
        return gS - gS.t()


class QuadraticForm(Function):
    """x_n^T A x_n for every row of x."""

    @staticmethod
    def forward(ctx, x, A):
        ctx.save_for_backward(x, A)
        return torch.einsum("ni,ij,nj->n", x, A, x)

    @staticmethod
    def backward(ctx, g):
        x, A = ctx.saved_tensors
        gx = g.unsqueeze(1) * (x @ (A + A.t()))
        gA = (g.unsqueeze(1) * x).t() @ x
        return gx, gA


class KronMatVec(Function):
    """(A kron B) applied to every row of x (N, p * q), with A (m, p) and B (n, q)."""

    @staticmethod
    def forward(ctx, A, B, x):
        p, q = A.size(1), B.size(1)
        if x.size(1) != p * q:
            raise ValueError(f"rows of x must have {p * q} entries")
        ctx.save_for_backward(A, B, x)
        X = x.reshape(-1, p, q)
        return (A @ X @ B.t()).flatten(1)

    @staticmethod
    def backward(ctx, grad_y):
        A, B, x = ctx.saved_tensors
        p, q = A.size(1), B.size(1)
        G = grad_y.reshape(-1, A.size(0), B.size(0))
        X = x.reshape(-1, p, q)
        gA = (G @ B @ X.mT).sum(0)
        gB = (G.mT @ A @ X).sum(0)
        gx = (A.t() @ G @ B).flatten(1)
        return gA, gB, gx
