import torch


class Refract(torch.autograd.Function):
    """Snell refraction of rays.

    d, n: (N, 3) unit directions and unit normals with d . n < 0; eta: (N, 1) ratio of indices.
    Returns the refracted directions, zero under total internal reflection, and where that happens.
    """

    @staticmethod
    def forward(ctx, d, n, eta):
        c = -(d * n).sum(-1, keepdim=True)
        k = 1 - eta**2 * (1 - c**2)
        tir = k <= 0
        t = eta * d + (eta * c - torch.where(tir, torch.ones_like(k), k).sqrt()) * n
        ctx.save_for_backward(d, n, eta)
        tir_flat = tir.squeeze(-1)
        ctx.mark_non_differentiable(tir_flat)
        return t.masked_fill(tir, 0.0), tir_flat

    @staticmethod
    def backward(ctx, g, _):
        d, n, eta = ctx.saved_tensors
        c = -(d * n).sum(-1, keepdim=True)
        k = 1 - eta**2 * (1 - c**2)
        tir = k <= 0
        root = torch.where(tir, torch.ones_like(k), k).sqrt()
        g = g.masked_fill(tir, 0.0)
        gn = (g * n).sum(-1, keepdim=True)
        gk = -gn / (2 * root)
        g_eta = (g * d).sum(-1, keepdim=True) + gn * c - 2 * gk * eta * (1 - c**2)
        gc = gn * eta
        return eta * g - gc * n, (eta * c - root) * g - gc * d, g_eta
