from typing import Sequence

import torch
from torch.autograd.function import once_differentiable


class FSQ(torch.autograd.Function):
    """Finite scalar quantisation: bound, round, rescale to [-1, 1].

    z (..., len(levels)), every level >= 3.  Rounding is straight-through: the gradient is that of
    (tanh(z + shift) * half_l - offset) / (levels // 2).
    """

    @staticmethod
    def constants(levels: Sequence[int], like, eps=1e-3):
        L = torch.tensor(levels, dtype=like.dtype, device=like.device)
        half_l = (L - 1) * (1 - eps) / 2
        offset = torch.where(L % 2 == 0, 0.5, 0.0).to(like.dtype)
        return half_l, offset, torch.atanh(offset / half_l), L // 2

    @staticmethod
    def forward(ctx, z, levels):
        half_l, offset, shift, width = FSQ.constants(levels, z)
        ctx.save_for_backward(z)
        ctx.levels = levels
        return torch.round(torch.tanh(z + shift) * half_l - offset) / width

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        z, = ctx.saved_tensors
        half_l, offset, shift, width = FSQ.constants(ctx.levels, z)
        th = torch.tanh(z + shift)
        return grad * (1 - th * th) * half_l / width, None
