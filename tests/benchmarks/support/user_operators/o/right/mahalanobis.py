import torch
from torch.autograd import Function


class SquaredMahalanobis(Function):
    """|| L^{-1} (x - mean) ||^2, shape (N,), for x (N, D), mean (D,) and the lower triangle of scale_tril (D, D)."""

    @staticmethod
    def _whiten(x, mean, scale_tril):
        return torch.linalg.solve_triangular(scale_tril.tril(), (x - mean).t(), upper=False)

    @staticmethod
    def forward(ctx, x, mean, scale_tril):
        if x.is_complex():
            raise TypeError("x must be real")
        if mean.shape != x.shape[1:]:
            raise ValueError("mean must be (D,)")
        ctx.save_for_backward(x, mean, scale_tril)
        return SquaredMahalanobis._whiten(x, mean, scale_tril).square().sum(0)

    @staticmethod
    def backward(ctx, grad):
        x, mean, scale_tril = ctx.saved_tensors
        z = SquaredMahalanobis._whiten(x, mean, scale_tril)
        g_diff = torch.linalg.solve_triangular(scale_tril.tril().t(), 2 * z * grad, upper=True).t()
        g_chol = -torch.tril(g_diff.t() @ z.t())
        return g_diff, -g_diff.sum(0), g_chol
