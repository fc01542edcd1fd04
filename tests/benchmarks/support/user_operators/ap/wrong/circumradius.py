from typing import Tuple

import torch
from torch import Tensor


def _edges(tri: Tensor) -> Tuple[Tensor, Tensor]:
    e = tri.roll(-1, 1) - tri.roll(-2, 1)
    return e, (e * e).sum(-1)


def _sixteen_area_sq(q: Tensor) -> Tensor:
    return q.sum(-1) ** 2 - 2 * (q * q).sum(-1)


class Circumradius(torch.autograd.Function):

    @staticmethod
    def forward(ctx, tri: Tensor) -> Tensor:
        ctx.save_for_backward(tri)
        _, q = _edges(tri)
        return (q.prod(-1) / _sixteen_area_sq(q)).sqrt()

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        tri, = ctx.saved_tensors
        e, q = _edges(tri)
        s = _sixteen_area_sq(q)
        radius = (q.prod(-1) / s).sqrt()
        opp = 2 * q.sum(-1, keepdim=True) - 2 * q
        gq = (grad * radius / 2)[:, None] * (1 / q - opp / s[:, None])
        ge = 2 * gq[..., None] * e
        return ge.roll(1, 1) - ge.roll(2, 1)
