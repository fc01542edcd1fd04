import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


def _windows(x, k):
    # (B, C, T) -> (B, C, T, k), window t holds x[t-k+1 .. t]
    return F.pad(x, (k - 1, 0)).unfold(-1, k, 1)


class CausalDepthwiseConv1d(torch.autograd.Function):
    """Short causal convolution in front of a scan; optional SiLU.

    x: (B, C, T), weight: (C, K), bias: (C,) or None
    """

    @staticmethod
    def forward(ctx, x, weight, bias=None, activation=None):
        if activation not in (None, "silu"):
            raise ValueError(f"unknown activation {activation!r}")
        pre = torch.einsum("bctk,ck->bct", _windows(x, weight.shape[1]), weight)
        if bias is not None:
            pre = pre + bias[:, None]
        ctx.save_for_backward(x, weight, pre if activation else None)
        ctx.has_bias = bias is not None
        return F.silu(pre) if activation == "silu" else pre.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x, weight, pre = ctx.saved_tensors
        k = weight.shape[1]
        if pre is not None:
            sig = torch.sigmoid(pre)
            dy = dy * sig * (1 + pre * (1 - sig))
        dweight = torch.einsum("bct,bctk->ck", dy, _windows(x, k))
        ahead = F.pad(dy, (0, k - 1)).unfold(-1, k, 1)
        dx = torch.einsum("bctk,ck->bct", ahead, weight)
        dbias = dy.sum((0, 2)) if ctx.has_bias else None
        return dx, dweight, dbias, None
