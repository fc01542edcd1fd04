import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _ProjectSimplex(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v: Tensor, radius: float, dim: int) -> Tensor:
        v = v.transpose(dim, -1)
        u = v.sort(dim=-1, descending=True).values
        css = u.cumsum(-1) - radius
        k = torch.arange(1, v.shape[-1] + 1, device=v.device, dtype=v.dtype)
        rho = (u * k > css).sum(-1, keepdim=True)
        tau = css.gather(-1, rho - 1) / rho
        out = (v - tau).clamp(min=0).transpose(dim, -1)
        ctx.save_for_backward(out > 0)
        ctx.dim = dim
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        (support,) = ctx.saved_tensors
        g = grad * support
        count = support.sum(ctx.dim, keepdim=True)
        mean = g.sum(ctx.dim, keepdim=True) / count
        return g - mean, None, None


def project_simplex(v: Tensor, radius: float = 1.0, dim: int = -1) -> Tensor:
    """Euclidean projection on {w >= 0, sum w = radius} along dim."""
    return _ProjectSimplex.apply(v, radius, dim)
