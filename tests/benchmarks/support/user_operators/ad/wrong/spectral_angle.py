import torch

__all__ = ["spectral_angle"]


class _SAM(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, y, eps):
        xy = (x * y).sum(-1)
        nx = x.norm(dim=-1)
        ny = y.norm(dim=-1)
        cos = xy / (nx * ny)
        ctx.save_for_backward(x, y, cos, nx, ny)
        ctx.eps = eps
        return torch.acos(cos.clamp(-1 + eps, 1 - eps))

    @staticmethod
    def backward(ctx, g):
        x, y, cos, nx, ny = ctx.saved_tensors
        inside = cos.abs() < 1 - ctx.eps
        d = -g * inside / torch.sqrt(1 - cos * cos)
        d = d.unsqueeze(-1)
        c, nx, ny = cos.unsqueeze(-1), nx.unsqueeze(-1), ny.unsqueeze(-1)
        gx = d * (y / (nx * ny) - c * x / nx ** 2)
        gy = d * (x / (nx * ny) - c * y / ny ** 2)
        return gx, gy, None


def spectral_angle(x, y, eps=1e-7, reduction="mean"):
    """Spectral angle mapper (radian) between two cubes, bands last."""
    a = _SAM.apply(x, y, eps)
    if reduction == "mean":
        return a.mean()
    if reduction == "sum":
        return a.sum()
    return a
