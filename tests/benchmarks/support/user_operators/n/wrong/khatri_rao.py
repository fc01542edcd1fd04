import torch
from torch.autograd.function import once_differentiable


class KhatriRao(torch.autograd.Function):
    """Column-wise Kronecker product of (I, R) and (J, R), giving (I * J, R)."""

    @staticmethod
    def forward(ctx, a, b):
        if a.shape[1] != b.shape[1]:
            raise ValueError("both factors need the same number of columns")
        ctx.save_for_backward(a, b)
        return (a.unsqueeze(1) * b.unsqueeze(0)).reshape(-1, a.shape[1])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        (I, R), J = a.shape, b.shape[0]
        g = grad.as_strided((I, J, R), (J * R, R, 1))
        grad_a = torch.einsum("ijr,jr->ir", g, b)
        grad_b = torch.einsum("ijr,ir->jr", g, a)
        return grad_a, grad_b
