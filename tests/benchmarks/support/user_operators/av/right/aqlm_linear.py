import torch
from torch import Tensor


def _decode(codes: Tensor, codebooks: Tensor) -> Tensor:
    """(O, G, M) codes, (M, K, g) codebooks -> (O, G * g), unscaled"""
    return sum(cb[codes[..., m]] for m, cb in enumerate(codebooks.unbind(0))).flatten(1)


class AQLMLinear(torch.autograd.Function):
    """Linear layer with additively quantised weight, decoded on the fly (twice).

    x (..., I), codes (O, G, M) int, codebooks (M, K, g), scales (O,), I = G * g
    """

    @staticmethod
    def forward(ctx, x: Tensor, codes: Tensor, codebooks: Tensor, scales: Tensor) -> Tensor:
        ctx.save_for_backward(x, codes, codebooks, scales)
        return x @ (_decode(codes, codebooks) * scales[:, None]).T

    @staticmethod
    def backward(ctx, g: Tensor):
        x, codes, codebooks, scales = ctx.saved_tensors
        raw = _decode(codes, codebooks)
        w = raw * scales[:, None]
        dx = g @ w
        dw = g.reshape(-1, g.size(-1)).T @ x.reshape(-1, x.size(-1))
        dscales = (dw * raw).sum(1)
        draw = (dw * scales[:, None]).unflatten(1, (codes.size(1), -1)).flatten(0, 1)
        zero = torch.zeros_like(codebooks[0])
        dcb = torch.stack([zero.index_add(0, codes[..., m].flatten(), draw) for m in range(codes.size(2))])
        return dx, None, dcb, dscales
