"""Valence angles of molecules."""
import torch
from torch import Tensor
from torch.autograd import Function


class BondAngles(Function):
    """Angles i-j-k (radians) at the middle atom j.

    Args:
        pos: coordinates (N, 3)
        triplets: (T, 3) int64 rows (i, j, k)

    Angles of exactly 0 or pi have no gradient and must not occur.
    """

    @staticmethod
    def forward(ctx, pos: Tensor, triplets: Tensor) -> Tensor:
        i, j, k = triplets.unbind(1)
        u, v = pos[i] - pos[j], pos[k] - pos[j]
        ctx.save_for_backward(pos, triplets)
        return torch.atan2(torch.linalg.cross(u, v).norm(dim=1), (u * v).sum(1))

    @staticmethod
    def backward(ctx, g: Tensor):
        pos, triplets = ctx.saved_tensors
        i, j, k = triplets.unbind(1)
        u, v = pos[i] - pos[j], pos[k] - pos[j]
        un, vn = u.norm(dim=1, keepdim=True), v.norm(dim=1, keepdim=True)
        u, v = u / un, v / vn
        cos = (u * v).sum(1, keepdim=True)
        sin = torch.linalg.cross(u, v).norm(dim=1, keepdim=True)
        gi = -g.unsqueeze(1) * (v - cos * u) / (un * sin)
        gk = -g.unsqueeze(1) * (u - cos * v) / (vn * sin)
        out = torch.zeros_like(pos)
        out = out.index_add(0, i, gi).index_add(0, k, gk)
        out = out.index_add(0, j, -gi)
        return out, None
