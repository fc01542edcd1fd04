import math

import torch


class _HSGP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lengthscale, sigma, boundary, num, kernel):
        w = math.pi * torch.arange(1, num + 1, dtype=x.dtype, device=x.device) / (2 * boundary)
        ctx.save_for_backward(x, lengthscale, sigma, w)
        ctx.boundary, ctx.kernel = boundary, kernel
        amp = sigma * _root_density(lengthscale, w, kernel)
        return torch.sin((x[:, None] + boundary) * w) * amp / math.sqrt(boundary)

    @staticmethod
    def backward(ctx, grad):
        x, lengthscale, sigma, w = ctx.saved_tensors
        shape = _root_density(lengthscale, w, ctx.kernel)
        phase = (x[:, None] + ctx.boundary) * w
        grad = grad / math.sqrt(ctx.boundary)
        g_amp = (grad * torch.sin(phase)).sum(0)
        if ctx.kernel == "rbf":
            slope = 1 / (2 * lengthscale) - lengthscale * w**2 / 2
        else:
            slope = 6 / (lengthscale * (3 + lengthscale * w**2)) - 3 / (2 * lengthscale)
        g_len = (g_amp * sigma * shape * slope).sum()
        g_sigma = (g_amp * shape).sum()
        g_x = (grad * torch.cos(phase) * w * sigma * shape).sum(1)
        return g_x, g_len, g_sigma, None, None, None


def _root_density(lengthscale, w, kernel):
    if kernel == "rbf":
        return (math.sqrt(2 * math.pi) * lengthscale).sqrt() * torch.exp(-((lengthscale * w) ** 2) / 4)
    if kernel == "matern32":
        return 2 * 3**0.75 * lengthscale**-1.5 / (3 / lengthscale**2 + w**2)
    raise ValueError(f"unknown kernel {kernel!r}")


def hsgp_features(x, lengthscale, sigma, boundary, num=20, kernel="rbf"):
    """Scaled Laplacian eigenfunctions of the Hilbert-space GP approximation.

    Args:
        x: centred inputs, shape (n,), all in ``[-boundary, boundary]``.
        lengthscale: positive scalar tensor.
        sigma: marginal standard deviation, positive scalar tensor.
        boundary: half width of the domain, float.
        num: number of basis functions.
        kernel: ``"rbf"`` or ``"matern32"``.

    Returns:
        Features of shape (n, num); ``features @ features.T`` approximates the covariance.
    """
    return _HSGP.apply(x, lengthscale, sigma, float(boundary), num, kernel)
