import torch
from torch import Tensor


def _positions(cu_seqlens: Tensor, t: int) -> Tensor:
    i = torch.arange(t, device=cu_seqlens.device)
    start = cu_seqlens[torch.searchsorted(cu_seqlens[1:].contiguous(), i, right=True)]
    return i - start


class _VarlenConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None, cu_seqlens: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight, bias, cu_seqlens)
        pos, k = _positions(cu_seqlens, x.size(0)), weight.size(1)
        y = torch.zeros_like(x) if bias is None else bias.expand_as(x)
        for j in range(k):
            ok = (pos >= j).unsqueeze(-1)
            y = y + x.roll(j, 0) * ok * weight[:, k - 1 - j]
        return y

    @staticmethod
    def backward(ctx, g: Tensor):
        x, weight, bias, cu_seqlens = ctx.saved_tensors
        pos, k = _positions(cu_seqlens, x.size(0)), weight.size(1)
        dx, dw = torch.zeros_like(x), []
        for j in reversed(range(k)):
            gj = g * (pos >= j).unsqueeze(-1)
            dx = dx + (gj * weight[:, k - 1 - j]).roll(-j, 0)
            dw.append((gj * x.roll(j, 0)).sum(0))
        return dx, torch.stack(dw, 1), None if bias is None else g.sum(0), None


def varlen_causal_conv(x: Tensor, weight: Tensor, cu_seqlens: Tensor, bias: Tensor | None = None) -> Tensor:
    """Depth-wise causal convolution of packed sequences, nothing crosses a boundary. x (T, D), weight (D, K)"""
    return _VarlenConv.apply(x, weight, bias, cu_seqlens)
