import torch


class _SAR(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, mu, rho, W):
        ctx.save_for_backward(y, mu, rho, W)
        n = y.numel()
        A = torch.eye(n, dtype=y.dtype, device=y.device) - rho * W
        e = A @ y - mu
        return torch.linalg.slogdet(A)[1] - n / 2 * torch.log(e @ e / n)

    @staticmethod
    def backward(ctx, g):
        y, mu, rho, W = ctx.saved_tensors
        n = y.numel()
        A = torch.eye(n, dtype=y.dtype, device=y.device) - rho * W
        e = A @ y - mu
        Ainv = torch.linalg.inv(A)
        d_e = -g * n * e / (e @ e)
        d_A = g * Ainv.T + torch.outer(d_e, y)
        return A @ d_e, -d_e, -(d_A * W).sum(), -rho * d_A


def sar_loglik(y, mu, rho, W):
    """Concentrated log-likelihood of the spatial lag model y = rho W y + mu + e (sigma^2 profiled out).

    y, mu (N,), rho scalar, W (N, N) spatial weights
    """
    return _SAR.apply(y, mu, rho, W)
