import torch
from torch import Tensor


class _SigmoidAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(q, k, v, bias)
        ctx.scale = scale
        p = torch.sigmoid(q @ k.mT * scale + bias[:, None, None])
        return p @ v

    @staticmethod
    def backward(ctx, do: Tensor):
        q, k, v, bias = ctx.saved_tensors
        p = torch.sigmoid(q @ k.mT * ctx.scale + bias[:, None, None])
        dv = p.mT @ do
        ds = (do @ v.mT) * p * (1 - p)
        dbias = ds.sum((0, 2, 3))
        ds = ds * ctx.scale
        return ds @ k, ds.mT @ q, dv, dbias, None


def sigmoid_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: float = 1.0) -> Tensor:
    """sigmoid(q k^T * scale + bias) v, without a normaliser. q, k, v (B, H, N, D), bias (H,)."""
    return _SigmoidAttention.apply(q, k, v, bias, scale)
