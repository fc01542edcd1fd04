import torch
import torch.nn.functional as F
from torch import Tensor


class _LIP(torch.autograd.Function):
    @staticmethod
    def _cols(x: Tensor, k: int, s: int) -> Tensor:
        b, c = x.shape[:2]
        return F.unfold(x, k, stride=s).reshape(b, c, k * k, -1)

    @staticmethod
    def forward(ctx, x: Tensor, logit: Tensor, k: int, s: int) -> Tensor:
        ctx.save_for_backward(x, logit)
        ctx.k, ctx.s = k, s
        w = _LIP._cols(logit, k, s).softmax(2)
        y = (w * _LIP._cols(x, k, s)).sum(2)
        return y.view(*x.shape[:2], (x.size(2) - k) // s + 1, (x.size(3) - k) // s + 1)

    @staticmethod
    def backward(ctx, g: Tensor):
        x, logit = ctx.saved_tensors
        k, s = ctx.k, ctx.s
        w, xc = _LIP._cols(logit, k, s).softmax(2), _LIP._cols(x, k, s)
        y = (w * xc).sum(2, keepdim=True)
        dx = w * g.flatten(2).unsqueeze(2)
        dl = dx * xc
        fold = lambda t: F.fold(t.flatten(1, 2), x.shape[2:], k, stride=s)
        return fold(dx), fold(dl), None, None


def lip_pool(x: Tensor, logit: Tensor, k: int = 2, s: int | None = None) -> Tensor:
    """Local importance pooling: x averaged with softmax(logit) in each window. Both (B, C, H, W)"""
    return _LIP.apply(x, logit, k, k if s is None else s)
