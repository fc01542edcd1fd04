import torch


def _basis(dist, centers, gamma):
    u = dist.unsqueeze(-1) - centers
    return u, torch.exp(-gamma * u * u)


class GaussianRBFBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dist, centers, g, gamma):
        ctx.save_for_backward(dist, centers, g)
        ctx.gamma = gamma
        u, y = _basis(dist, centers, gamma)
        g_u = -2 * gamma * g * u * y
        return g_u.sum(-1), -g_u.reshape(-1, centers.numel()).sum(0)

    @staticmethod
    def backward(ctx, h_dist, h_centers):
        dist, centers, g = ctx.saved_tensors
        gamma = ctx.gamma
        u, y = _basis(dist, centers, gamma)
        h = h_dist.unsqueeze(-1) - h_centers
        d_u = -2 * gamma * g * h * y * (1 - gamma * u * u)
        d_g = -2 * gamma * u * y * h
        return d_u.sum(-1), -d_u.reshape(-1, centers.numel()).sum(0), d_g, None


class GaussianRBF(torch.autograd.Function):
    """Gaussian smearing exp(-gamma (d - mu_k)^2): dist (...), centers (K,) -> (..., K)."""

    @staticmethod
    def forward(ctx, dist, centers, gamma=10.0):
        ctx.save_for_backward(dist, centers)
        ctx.gamma = gamma
        return _basis(dist, centers, gamma)[1]

    @staticmethod
    def backward(ctx, grad):
        dist, centers = ctx.saved_tensors
        g_dist, g_centers = GaussianRBFBackward.apply(dist, centers, grad, ctx.gamma)
        return g_dist, g_centers, None
