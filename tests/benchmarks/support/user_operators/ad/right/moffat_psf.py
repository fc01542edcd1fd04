import torch

_GRID = {}


def _pixel_grid(size, like):
    key = (size, like.dtype, like.device)
    if key not in _GRID:
        c = torch.arange(size, dtype=like.dtype, device=like.device) - (size - 1) / 2
        yy, xx = torch.meshgrid(c, c, indexing="ij")
        _GRID[key] = yy.contiguous(), xx.contiguous()
    return _GRID[key]


class MoffatStamp(torch.autograd.Function):
    """Postage stamp of a Moffat star.

    flux: (), center: (2,) offset (y, x) from the middle of the stamp in pixels,
    width: () the core radius, beta: float, size: stamp side.
    """

    @staticmethod
    def forward(ctx, flux, center, width, beta, size):
        yy, xx = _pixel_grid(size, flux)
        dy = yy - center[0]
        dx = xx - center[1]
        r2 = (dy ** 2 + dx ** 2) / width ** 2
        prof = (1 + r2) ** (-beta)
        norm = (beta - 1) / (torch.pi * width ** 2)
        ctx.save_for_backward(flux, width, dy, dx, r2, prof)
        ctx.beta = beta
        return flux * norm * prof

    @staticmethod
    def backward(ctx, g):
        flux, width, dy, dx, r2, prof = ctx.saved_tensors
        beta = ctx.beta
        norm = (beta - 1) / (torch.pi * width ** 2)
        g_flux = (g * norm * prof).sum()
        g_r2 = g * flux * norm * (-beta) * prof / (1 + r2)
        g_c = torch.stack([(g_r2 * -2 * dy).sum(), (g_r2 * -2 * dx).sum()]) / width ** 2
        g_w = (g_r2 * -2 * r2).sum() / width - 2 * (g * flux * norm * prof).sum() / width
        return g_flux, g_c, g_w, None, None
