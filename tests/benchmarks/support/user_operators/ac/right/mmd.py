import torch


def _sqdist(a, b):
    return ((a[:, None] - b[None]) ** 2).sum(-1)


def _slopes(a, b, sigmas, drop_diag):
    d2 = _sqdist(a, b)
    out = sum(-0.5 / s ** 2 * torch.exp(-0.5 * d2 / s ** 2) for s in sigmas)
    if drop_diag:
        out = out * (1 - torch.eye(len(a), dtype=a.dtype, device=a.device))
    return out


class _MMD2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, sigmas, unbiased):
        def total(a, b, drop):
            k = sum(torch.exp(-0.5 * _sqdist(a, b) / s ** 2) for s in sigmas)
            return k.sum() - (k.diagonal().sum() if drop else 0.0)
        n, m = len(x), len(y)
        nx, ny = (n * (n - 1), m * (m - 1)) if unbiased else (n * n, m * m)
        ctx.save_for_backward(x, y)
        ctx.sigmas, ctx.unbiased, ctx.norms = sigmas, unbiased, (nx, ny, n * m)
        return total(x, x, unbiased) / nx + total(y, y, unbiased) / ny - 2 * total(x, y, False) / (n * m)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        nx, ny, nxy = ctx.norms
        sxx = _slopes(x, x, ctx.sigmas, ctx.unbiased) / nx
        syy = _slopes(y, y, ctx.sigmas, ctx.unbiased) / ny
        sxy = _slopes(x, y, ctx.sigmas, False) / nxy

        def pull(s, a, b):
            return s.sum(1, keepdim=True) * a - s @ b
        gx = 4 * pull(sxx, x, x) - 4 * pull(sxy, x, y)
        gy = 4 * pull(syy, y, y) - 4 * pull(sxy.t(), y, x)
        return g * gx, g * gy, None, None


def mmd2(x, y, sigmas=(0.5, 1.0, 2.0), unbiased=False):
    return _MMD2.apply(x, y, tuple(sigmas), unbiased)
