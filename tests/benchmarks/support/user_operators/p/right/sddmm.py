import torch
from torch.autograd.function import once_differentiable


class SampledDotProduct(torch.autograd.Function):
    """out[e] = a[row[e]] . b[col[e]] for the non-zeros (row, col) of a sparse pattern.

    a: (M, K), b: (N, K), row, col: (nnz,)
    """

    @staticmethod
    def forward(ctx, a, b, row, col):
        if a.is_complex() or b.is_complex():
            raise TypeError("complex inputs are not supported")
        ctx.save_for_backward(a, b, row, col)
        return (a[row] * b[col]).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        a, b, row, col = ctx.saved_tensors
        grad_a, grad_b = SampledDotProductBackward.apply(grad, a, b, row, col)
        return grad_a, grad_b, None, None


class SampledDotProductBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, grad, a, b, row, col):
        ctx.save_for_backward(grad, a, b, row, col)
        grad_a = torch.zeros_like(a).index_add_(0, row, grad[:, None] * b[col])
        grad_b = torch.zeros_like(b).index_add_(0, col, grad[:, None] * a[row])
        return grad_a, grad_b

    @staticmethod
    @once_differentiable
    def backward(ctx, gg_a, gg_b):
        grad, a, b, row, col = ctx.saved_tensors
        g_grad = (gg_a[row] * b[col]).sum(-1) + (gg_b[col] * a[row]).sum(-1)
        g_a = torch.zeros_like(a).index_add_(0, row, grad[:, None] * gg_b[col])
        g_b = torch.zeros_like(b).index_add_(0, col, grad[:, None] * gg_a[row])
        return g_grad, g_a, g_b, None, None
