import torch
from torch import Tensor
from torch.autograd import Function


def _probs(q: Tensor, k: Tensor, scale: float) -> Tensor:
    return ((q @ k.mH).real * scale).softmax(-1)


class HermitianAttention(Function):
    """Softmax over Re(q k^H) * scale, complex values. q (..., M, D), k (..., N, D), v (..., N, E)"""

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        ctx.save_for_backward(q, k, v)
        return _probs(q, k, scale).to(v.dtype) @ v

    @staticmethod
    def backward(ctx, g: Tensor):
        q, k, v = ctx.saved_tensors
        p = _probs(q, k, ctx.scale)
        dv = p.mT.to(g.dtype) @ g
        dp = (g @ v.mH).real
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale
        ds = ds.to(q.dtype)
        return ds @ k.conj(), ds.mT @ q, dv, None
