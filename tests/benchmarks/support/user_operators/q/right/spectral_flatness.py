from typing import Any

import torch
from torch import Tensor


class SpectralFlatness(torch.autograd.Function):
    """Wiener entropy: geometric over arithmetic mean of a power spectrum.

    Parameters
    ----------
    power : Tensor
        Non-negative power spectrum of any shape.
    dim : int
        The frequency axis; it is reduced.
    eps : float
        Added to the power before anything else, so that silence has flatness one.
    """

    @staticmethod
    def forward(ctx: Any, power: Tensor, dim: int = -1, eps: float = 1e-6) -> Tensor:
        if power.is_complex():
            raise ValueError("pass the power spectrum, not the spectrum")
        ctx.save_for_backward(power)
        ctx.dim, ctx.eps = dim, eps
        p = power + eps
        return p.log().mean(dim).exp() / p.mean(dim)

    @staticmethod
    def backward(ctx: Any, grad: Tensor):
        (power,) = ctx.saved_tensors
        p = power + ctx.eps
        arith = p.mean(ctx.dim, keepdim=True)
        flat = p.log().mean(ctx.dim, keepdim=True).exp() / arith
        n = power.shape[ctx.dim]
        return grad.unsqueeze(ctx.dim) * flat / n * (1 / p - 1 / arith), None, None
