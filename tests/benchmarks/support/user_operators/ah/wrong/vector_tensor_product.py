import math

import torch
from torch import nn


class _VectorTP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x1, x2, w0, w1):
        ctx.save_for_backward(x1, x2, w0, w1)
        c0, c1 = _path_norms(x1.shape[-2])
        dot = (x1 * x2.unsqueeze(-2)).sum(-1)
        cross = torch.linalg.cross(x1, x2.unsqueeze(-2).expand_as(x1), dim=-1)
        out0 = c0 * dot @ w0
        out1 = c1 * torch.einsum("...ui,uw->...wi", cross, w1)
        return torch.cat([out0, out1.flatten(-2)], -1)

    @staticmethod
    def backward(ctx, grad):
        x1, x2, w0, w1 = ctx.saved_tensors
        c0, c1 = _path_norms(x1.shape[-2])
        g0 = grad[..., : w0.shape[1]] * c0
        g1 = grad[..., w0.shape[1] :].unflatten(-1, (w1.shape[1], 3))
        y = x2.unsqueeze(-2).expand_as(x1)
        dot = (x1 * y).sum(-1)
        cross = torch.linalg.cross(x1, y, dim=-1)
        d_dot = (g0 @ w0.mT).unsqueeze(-1)
        d_cross = torch.einsum("...wi,uw->...ui", g1, w1)
        gx1 = d_dot * y + torch.linalg.cross(y, d_cross, dim=-1)
        gx2 = (d_dot * x1 + torch.linalg.cross(d_cross, x1, dim=-1)).sum(-2)
        gw0 = dot.flatten(0, -2).mT @ g0.flatten(0, -2)
        gw1 = torch.einsum("bui,bwi->uw", cross.flatten(0, -3), g1.flatten(0, -3))
        return gx1, gx2, gw0, gw1


def _path_norms(mul):
    return 1 / math.sqrt(3 * mul), 1 / math.sqrt(2 * mul)


class VectorTensorProduct(nn.Module):
    """
    Tensor product of ``mul x 1o`` with ``1x1o`` to ``mul_scalar x 0e + mul_pseudo x 1e``,
    all multiplicities connected, paths normalised to unit variance.

    Parameters
    ----------
    mul : int
        multiplicity of the first operand
    mul_scalar, mul_pseudo : int
        multiplicities of the output

    Notes
    -----
    ``forward`` takes ``(..., mul, 3)`` and ``(..., 3)`` with at least one batch axis and gives
    ``(..., mul_scalar + 3 * mul_pseudo)``.
    """

    def __init__(self, mul, mul_scalar, mul_pseudo):
        super().__init__()
        self.mul = mul
        self.weight0 = nn.Parameter(torch.randn(mul, mul_scalar))
        self.weight1 = nn.Parameter(torch.randn(mul, mul_pseudo))

    def forward(self, x1, x2):
        if x1.shape[-2:] != (self.mul, 3):
            raise ValueError(f"expected (..., {self.mul}, 3), got {tuple(x1.shape)}")
        if x1.shape[:-2] != x2.shape[:-1] or x2.dim() < 2:
            raise ValueError("batch axes differ")
        return _VectorTP.apply(x1, x2, self.weight0, self.weight1)
