import torch


class GlobalResponseNorm(torch.autograd.Function):
    """ConvNeXt V2. x (B, N, C), gamma (C,), beta (C,)"""

    @staticmethod
    def forward(ctx, x, gamma, beta, eps=1e-6):
        ctx.save_for_backward(x, gamma)
        ctx.eps = eps
        gx = x.norm(dim=1, keepdim=True)
        nx = gx / (gx.mean(-1, keepdim=True) + eps)
        return gamma * (x * nx) + beta + x

    @staticmethod
    def backward(ctx, dy):
        x, gamma = ctx.saved_tensors
        gx = x.norm(dim=1, keepdim=True)
        den = gx.mean(-1, keepdim=True) + ctx.eps
        nx = gx / den

        dgamma = (dy * x * nx).sum((0, 1))
        dbeta = dy.sum((0, 1))

        u = dy * gamma
        dnx = (u * x).sum(1, keepdim=True)
        dgx = dnx / den
        dx = u * nx + dy + dgx * x / gx.clamp(min=1e-12)
        return dx, dgamma, dbeta, None
