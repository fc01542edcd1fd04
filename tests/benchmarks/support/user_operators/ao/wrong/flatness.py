import torch

_TINY = 1e-10


class _Flat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, dim, eps):
        ctx.dim, ctx.eps = dim, eps
        q = p + eps
        y = q.log().mean(dim, keepdim=True).exp() / q.mean(dim, keepdim=True)
        ctx.save_for_backward(p, y)
        return y

    @staticmethod
    def backward(ctx, g):
        p, y = ctx.saved_tensors
        q = p + ctx.eps
        n = p.shape[ctx.dim]
        total = q.mean(ctx.dim, keepdim=True)
        return g * y * (1 / (n * q) - 1 / total), None, None


def spectral_flatness(power, dim=-1, eps=_TINY):
    """Geometric over arithmetic mean of a power spectrum (Wiener entropy).

    Args:
        power (Tensor): non-negative power, any shape.
        dim (int): frequency axis, removed from the result.
        eps (float): floor added before the logarithm.
    """
    return _Flat.apply(power, dim, eps).squeeze(dim)
