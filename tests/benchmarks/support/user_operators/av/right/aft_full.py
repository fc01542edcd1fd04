import torch
from torch import Tensor


class _AFTFull(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, w: Tensor, causal: bool) -> Tensor:
        ctx.save_for_backward(q, k, v, w)
        ctx.causal = causal
        ew = w.exp().tril() if causal else w.exp()
        ek = k.exp()
        return torch.sigmoid(q) * (ew @ (ek * v)) / (ew @ ek)

    @staticmethod
    def backward(ctx, g: Tensor):
        q, k, v, w = ctx.saved_tensors
        ew = w.exp().tril() if ctx.causal else w.exp()
        ek = k.exp()
        den = ew @ ek
        y = ew @ (ek * v) / den
        gate = torch.sigmoid(q)
        dq = g * y * gate * (1 - gate)
        dnum = g * gate / den
        dden = -dnum * y
        dekv = ew.T @ dnum
        dk = ek * (v * dekv + ew.T @ dden)
        dv = ek * dekv
        dw = ew * (torch.einsum("btd,bsd->ts", dnum, ek * v) + torch.einsum("btd,bsd->ts", dden, ek))
        return dq, dk, dv, dw, None


def aft_full(q: Tensor, k: Tensor, v: Tensor, w: Tensor, causal: bool = False) -> Tensor:
    """Attention-free transformer with pairwise position bias. q, k, v (B, T, D), w (T, T)."""
    return _AFTFull.apply(q, k, v, w, causal)
