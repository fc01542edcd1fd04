import torch


def _log1p_over(a):
    """log(1 + a) / a and its derivative, with the limit at zero"""
    near = a.abs() < 1e-2
    s = torch.where(near, torch.ones_like(a), a)
    value, slope = torch.zeros_like(a), torch.zeros_like(a)
    for k in range(9, -1, -1):
        value = (-1) ** k / (k + 1) + a * value
        if k:
            slope = (-1) ** k * k / (k + 1) + a * slope
    far = torch.log1p(s) / s
    return torch.where(near, value, far), torch.where(near, slope, (1 / (1 + s) - far) / s)


class _GPD(torch.autograd.Function):
    @staticmethod
    def forward(ctx, excess, xi, sigma):
        ctx.save_for_backward(excess, xi, sigma)
        z = excess / sigma
        value, _ = _log1p_over(xi * z)
        return sigma.log() + z * value + torch.log1p(xi * z)

    @staticmethod
    def backward(ctx, grad):
        excess, xi, sigma = ctx.saved_tensors
        z = excess / sigma
        a = xi * z
        _, slope = _log1p_over(a)
        g_z = grad * (1 + xi) / (1 + a)
        g_xi = grad * (z**2 * slope + z / (1 + a))
        g_sigma = (grad - g_z * z) / sigma
        return (g_z / sigma).sum_to_size(excess.shape), g_xi.sum_to_size(xi.shape), g_sigma.sum_to_size(sigma.shape)


def gpd_nll(excess, xi, sigma, reduction="mean"):
    """Negative log-likelihood of the generalised Pareto distribution.

    Args:
        excess (Tensor): values over the threshold, not negative.
        xi (Tensor): shape, may be zero; broadcastable with excess; ``1 + xi * excess / sigma > 0``.
        sigma (Tensor): scale, positive; broadcastable with excess.
        reduction (str): ``"none"``, ``"mean"`` or ``"sum"``.
    """
    nll = _GPD.apply(excess, xi, sigma)
    if reduction == "none":
        return nll
    return nll.mean() if reduction == "mean" else nll.sum()
