import torch
from torch import Tensor
from torch.autograd import Function


class SlotWeights(Function):
    """One slot-attention update: softmax over slots, weighted mean over inputs.

    slots (B, S, D), k (B, N, D), v (B, N, E) -> updates (B, S, E), attn (B, N, S)
    """

    eps = 1e-8

    @staticmethod
    def forward(ctx, slots: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        attn = (k @ slots.mT * k.size(-1) ** -0.5).softmax(-1)
        w = attn + SlotWeights.eps
        w = w / w.sum(1, keepdim=True)
        ctx.save_for_backward(slots, k, v, attn)
        return w.mT @ v, attn

    @staticmethod
    def backward(ctx, g: Tensor, g_attn: Tensor):
        slots, k, v, attn = ctx.saved_tensors
        total = (attn + SlotWeights.eps).sum(1, keepdim=True)
        w = (attn + SlotWeights.eps) / total
        dv = w @ g
        dw = v @ g.mT
        dattn = (dw - (dw * w).sum(1, keepdim=True)) / total + g_attn
        ds = attn * (dattn - (dattn * attn).sum(-1, keepdim=True)) * k.size(-1) ** -0.5
        return ds.mT @ k, ds @ slots, dv
