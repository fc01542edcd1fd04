import torch
from torch import Tensor


class ComplexPowerLaw(torch.autograd.Function):
    """|X|^c e^{i arg X} with magnitudes floored by eps: X * (|X|^2 + eps)^((c-1)/2)

    X: complex tensor of any shape; c: (0, 1], float
    """

    @staticmethod
    def forward(ctx, X: Tensor, c: float = 0.3, eps: float = 1e-6) -> Tensor:
        ctx.save_for_backward(X)
        ctx.c, ctx.eps = c, eps
        m = X.real ** 2 + X.imag ** 2 + eps
        return X * m ** ((c - 1) / 2)

    @staticmethod
    def backward(ctx, G: Tensor):
        (X,) = ctx.saved_tensors
        c = ctx.c
        m = X.real ** 2 + X.imag ** 2
        inner = X.real * G.real + X.imag * G.imag
        return G * m ** ((c - 1) / 2) + (c - 1) * m ** ((c - 3) / 2) * inner * X, None, None
