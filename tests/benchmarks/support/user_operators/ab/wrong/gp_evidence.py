import math

import torch


def _kernel(X, length, scale, noise):
    diff = X[:, None] - X[None]
    sq = diff.square().sum(-1)
    k = scale * torch.exp(-0.5 * sq / length ** 2)
    return diff, sq, k, k + noise * torch.eye(len(X), dtype=X.dtype, device=X.device)


class GPEvidence(torch.autograd.Function):
    """Negative log marginal likelihood of a Gaussian process with an RBF kernel.

    X (n, d), y (n,), length scale, output scale and noise variance (positive scalars).
    """

    @staticmethod
    def forward(ctx, X, y, length, scale, noise):
        ctx.save_for_backward(X, y, length, scale, noise)
        *_, K = _kernel(X, length, scale, noise)
        L = torch.linalg.cholesky(K)
        a = torch.cholesky_solve(y[:, None], L)[:, 0]
        return 0.5 * y @ a + L.diagonal().log().sum() + 0.5 * len(y) * math.log(2 * math.pi)

    @staticmethod
    def backward(ctx, g):
        X, y, length, scale, noise = ctx.saved_tensors
        diff, sq, k, K = _kernel(X, length, scale, noise)
        L = torch.linalg.cholesky(K)
        a = torch.cholesky_solve(y[:, None], L)
        eye = torch.eye(len(y), dtype=K.dtype, device=K.device)
        W = 0.5 * g * (torch.cholesky_solve(eye, L) - a @ a.t())
        Wk = W * k
        gX = -(Wk[..., None] * diff).sum(1) / length ** 2
        g_length = (Wk * sq).sum() / length ** 3
        return gX, g * a[:, 0], g_length, Wk.sum() / scale, W.trace()
