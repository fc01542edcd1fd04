import torch
from torch.autograd import Function


class _QuadraticFormGrad(Function):
    @staticmethod
    def forward(ctx, x, mat, grad):
        ctx.save_for_backward(x, mat, grad)
        g = grad.unsqueeze(1)
        return g * (x @ (mat + mat.t())), (g * x).t() @ x

    @staticmethod
    def backward(ctx, h_x, h_mat):
        x, mat, grad = ctx.saved_tensors
        g = grad.unsqueeze(1)
        sym = mat + mat.t()
        d_grad = (h_x * (x @ sym)).sum(1) + (x @ h_mat * x).sum(1)
        d_x = g * (h_x @ sym + x @ (h_mat + h_mat.t()))
        d_mat = (g * h_x).t() @ x + (g * x).t() @ h_x
        return d_x, d_mat, d_grad


class QuadraticForm(Function):
    """x_b^T M x_b for the real rows of x (B, D) and any real square M (D, D); returns (B,)."""

    @staticmethod
    def forward(ctx, x, mat):
        if mat.shape != (x.size(1), x.size(1)):
            raise ValueError("mat must be (D, D)")
        if x.is_complex() or mat.is_complex():
            raise TypeError("real operands only")
        ctx.save_for_backward(x, mat)
        return (x @ mat * x).sum(1)

    @staticmethod
    def backward(ctx, grad):
        x, mat = ctx.saved_tensors
        return _QuadraticFormGrad.apply(x, mat, grad)
