import torch


def _centre(K):
    return K - K.mean(0, keepdim=True) - K.mean(1, keepdim=True) + K.mean()


class HSIC(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, sx, sy):
        n = len(x)
        dx, dy = x[:, None] - x[None], y[:, None] - y[None]
        K = torch.exp(-(dx**2).sum(-1) / (2 * sx**2))
        L = torch.exp(-(dy**2).sum(-1) / (2 * sy**2))
        ctx.save_for_backward(x, y)
        ctx.sx, ctx.sy = sx, sy
        return (K * _centre(L)).sum() / (n - 1) ** 2

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        n = len(x)
        dx, dy = x[:, None] - x[None], y[:, None] - y[None]
        K = torch.exp(-(dx**2).sum(-1) / (2 * ctx.sx**2))
        L = torch.exp(-(dy**2).sum(-1) / (2 * ctx.sy**2))
        wx = -2 * _centre(L) * K / ctx.sx**2
        wy = -2 * _centre(K) * L / ctx.sy**2
        g = g / (n - 1) ** 2
        return g * (wx[..., None] * dx).sum(1), g * (wy[..., None] * dy).sum(1), None, None
