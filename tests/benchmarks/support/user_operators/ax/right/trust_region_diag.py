import torch


class _TrustRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, h, radius):
        lam = torch.zeros_like(radius)
        for _ in range(60):
            s = h + lam[..., None]
            size = (g / s).norm(dim=-1)
            curve = (g**2 / s**3).sum(-1).clamp(min=torch.finfo(g.dtype).tiny)
            lam = (lam + size**2 / curve * (size - radius) / radius).clamp(min=0)
        step = -g / (h + lam[..., None])
        ctx.save_for_backward(g, h, radius, step, lam)
        return step, lam

    @staticmethod
    def backward(ctx, d_step, d_lam):
        g, h, radius, step, lam = ctx.saved_tensors
        s = h + lam[..., None]
        ratio = step / s
        active = lam > 0
        q = torch.where(active, (step * ratio).sum(-1), torch.ones_like(lam))
        k = torch.where(active, ((d_step * ratio).sum(-1) - d_lam) / q, torch.zeros_like(lam))
        g_g = k[..., None] * ratio - d_step / s
        g_h = step * g_g
        g_radius = k * radius
        return g_g, g_h, g_radius


def trust_region_diag(g, h, radius):
    """Trust-region step for a diagonal model.

    Minimises ``g @ p + p @ diag(h) @ p / 2`` subject to ``|p| <= radius``.

    Parameters
    ----------
    g : Tensor (..., n)
        Gradient, not all zero.
    h : Tensor (..., n)
        Curvatures, positive.
    radius : Tensor (...)
        Radius for every problem of the batch, positive.

    Returns
    -------
    step : Tensor (..., n)
    lam : Tensor (...)
        Multiplier of the constraint; zero where the step is interior.
    """
    return _TrustRegion.apply(g, h, radius)
