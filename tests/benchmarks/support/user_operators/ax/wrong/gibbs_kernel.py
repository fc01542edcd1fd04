import torch


def _terms(x1, x2, l1, l2):
    d = x1[:, None] - x2[None, :]
    s = l1[:, None] ** 2 + l2[None, :] ** 2
    return d, s


class GibbsKernel(torch.autograd.Function):
    """Gibbs' non-stationary kernel in one dimension.

    Args:
        x1: inputs, shape (n,).
        x2: inputs, shape (m,).
        l1: lengthscale at every x1, positive, shape (n,).
        l2: lengthscale at every x2, positive, shape (m,).

    Returns:
        Covariance of shape (n, m).
    """

    @staticmethod
    def forward(ctx, x1, x2, l1, l2):
        d, s = _terms(x1, x2, l1, l2)
        k = torch.sqrt(2 * l1[:, None] * l2[None, :] / s) * torch.exp(-(d**2) / s)
        ctx.save_for_backward(x1, x2, l1, l2, k, d, s)
        return k

    @staticmethod
    def backward(ctx, grad):
        x1, x2, l1, l2, k, d, s = ctx.saved_tensors
        gk = grad * k
        gx = -2 * gk * d / s
        common = gk * (2 * d**2 / s - 1) / s
        g1 = (gk / (2 * l1[:, None]) + common * l1[:, None]).sum(1)
        g2 = (gk / (2 * l2[None, :]) + common * l2[None, :]).sum(0)
        return gx.sum(1), -gx.sum(0), g1, g2
