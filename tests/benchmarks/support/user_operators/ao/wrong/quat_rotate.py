import torch
from torch import Tensor


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1, keepdim=True)


def _cross(a: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.cross(a, b, dim=-1)


class QuatRotate(torch.autograd.Function):
    """Rotates points v (N, 3) by quaternions q (N, 4) = (w, x, y, z). q need not be of unit length."""

    @staticmethod
    def forward(ctx, q: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(q, v)
        n = q.norm(dim=-1, keepdim=True)
        w, r = (q / n).split([1, 3], -1)
        t = 2 * _cross(r, v)
        return v + w * t + _cross(r, t)

    @staticmethod
    def backward(ctx, g: Tensor):
        q, v = ctx.saved_tensors
        n = q.norm(dim=-1, keepdim=True)
        unit = q / n
        w, r = unit.split([1, 3], -1)

        gw = 2 * _dot(g, _cross(r, v))
        gr = 2 * w * _cross(v, g) + 2 * (g * _dot(r, v) + v * _dot(g, r) - 2 * r * _dot(g, v))
        gu = torch.cat([gw, gr], -1)
        gq = gu / n

        gv = g - 2 * w * _cross(r, g) + 2 * _cross(r, _cross(r, g))
        return gq, gv
