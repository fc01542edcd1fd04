import torch


def _kappa(e):
    """theta / (2 sin theta) and its derivative, as functions of e = 1 - cos theta"""
    small = e.abs() < 1e-3
    es = torch.where(small, torch.full_like(e, 0.5), e)
    theta = torch.acos(1 - es)
    sin = torch.sqrt(es * (2 - es))
    k = torch.where(
        small,
        0.5 + e / 6 + e**2 / 15 + e**3 / 35 + 4 * e**4 / 315,
        theta / (2 * sin),
    )
    dk = torch.where(
        small,
        1 / 6 + 2 * e / 15 + 3 * e**2 / 35 + 16 * e**3 / 315,
        (sin - theta * (1 - es)) / (2 * sin**3),
    )
    return k, dk


class SO3Log(torch.autograd.Function):
    """Rotation vectors (..., 3) of rotation matrices (..., 3, 3), for angles below pi."""

    @staticmethod
    def forward(ctx, R):
        ctx.save_for_backward(R)
        e = (3 - R.diagonal(dim1=-2, dim2=-1).sum(-1)) / 2
        A = R - R.transpose(-1, -2)
        w = torch.stack([A[..., 2, 1], A[..., 0, 2], A[..., 1, 0]], -1)
        return _kappa(e)[0][..., None] * w

    @staticmethod
    def backward(ctx, g):
        (R,) = ctx.saved_tensors
        e = (3 - R.diagonal(dim1=-2, dim2=-1).sum(-1)) / 2
        A = R - R.transpose(-1, -2)
        w = torch.stack([A[..., 2, 1], A[..., 0, 2], A[..., 1, 0]], -1)
        k, dk = _kappa(e)
        ge = (g * w).sum(-1) * dk
        x, y, z = (k[..., None] * g).unbind(-1)
        d = -ge / 2
        return torch.stack([d, -z, y, z, d, -x, -y, x, d], -1).unflatten(-1, (3, 3))
