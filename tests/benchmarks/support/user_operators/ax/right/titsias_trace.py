import torch


class TitsiasTrace(torch.autograd.Function):
    """Trace penalty of the variational sparse GP bound.

    ``(sum(knn_diag) - tr(kmn.T @ inv(kmm) @ kmn)) / (2 * noise)``

    Args:
        knn_diag: prior variances at the data, shape (n,).
        kmn: covariance of inducing points and data, shape (m, n).
        kmm: covariance of the inducing points, shape (m, m), symmetric positive definite.
            Only its symmetric part is used.
        noise: noise variance, positive, 0-dim.
    """

    @staticmethod
    def forward(ctx, knn_diag, kmn, kmm, noise):
        chol = torch.linalg.cholesky((kmm + kmm.mT) / 2)
        half = torch.linalg.solve_triangular(chol, kmn, upper=False)
        out = (knn_diag.sum() - half.pow(2).sum()) / (2 * noise)
        ctx.save_for_backward(knn_diag, kmn, kmm, noise, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        knn_diag, kmn, kmm, noise, out = ctx.saved_tensors
        g = grad / noise
        alpha = torch.linalg.solve((kmm + kmm.mT) / 2, kmn)
        g_noise = -g * out
        g_diag = (g / 2).expand(knn_diag.shape)
        g_kmn = -g * alpha
        g_kmm = g / 2 * (alpha @ alpha.mT)
        return g_diag, g_kmn, g_kmm, g_noise
