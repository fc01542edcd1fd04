import torch


def _gram(z, eps):
    n, d = z.shape[-2:]
    alpha = d / (n * eps ** 2)
    return alpha, torch.eye(d, dtype=z.dtype, device=z.device) + alpha * z.mT @ z


class _CodingRate(torch.autograd.Function):

    @staticmethod
    def forward(ctx, z, eps):
        alpha, m = _gram(z, eps)
        ctx.eps = eps
        ctx.save_for_backward(z)
        return torch.linalg.slogdet(m)[1] / 2

    @staticmethod
    def backward(ctx, grad):
        z, = ctx.saved_tensors
        alpha, m = _gram(z, ctx.eps)
        return alpha * grad[..., None, None] * torch.linalg.solve(m, z.mT).mT, None


def coding_rate(z, eps=0.5):
    """Lossy coding rate of MCR^2: z (..., N, d) -> (...)"""
    return _CodingRate.apply(z, eps)
