import torch


class MMD2(torch.autograd.Function):
    """Unbiased estimate of the squared MMD with a sum of RBF kernels.

    x: (n, d), y: (m, d), n, m > 1; sigmas: list of bandwidths
    """

    @staticmethod
    def forward(ctx, x, y, sigmas):
        ctx.save_for_backward(x, y)
        ctx.sigmas = sigmas
        n, m = len(x), len(y)

        def k(a, b):
            d2 = ((a[:, None] - b[None]) ** 2).sum(-1)
            return sum(torch.exp(-d2 / (2 * s**2)) for s in sigmas)

        kxx, kyy = k(x, x), k(y, y)
        return (
            (kxx.sum() - kxx.trace()) / (n * (n - 1))
            + (kyy.sum() - kyy.trace()) / (m * (m - 1))
            - 2 * k(x, y).mean()
        )

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        n, m = len(x), len(y)

        def pull(a, b):
            diff = a[:, None] - b[None]
            d2 = (diff**2).sum(-1, keepdim=True)
            return sum(-torch.exp(-d2 / (2 * s**2)) / s**2 for s in ctx.sigmas) * diff

        xy = pull(x, y)
        gx = 2 * pull(x, x).sum(1) / (n * (n - 1)) - 2 * xy.sum(1) / (n * m)
        gy = 2 * pull(y, y).sum(1) / (m * (m - 1)) + 2 * xy.sum(0) / (n * m)
        return g * gx, g * gy, None
