import torch
from torch.autograd.function import once_differentiable


class SmoothMin(torch.autograd.Function):
    """Polynomial smooth union of two signed distance fields.

    a, b: distances of one shape; k: blend radius, a positive scalar tensor.
    """

    @staticmethod
    def forward(ctx, a, b, k):
        ctx.save_for_backward(a, b, k)
        h = (k - (a - b).abs()).clamp(min=0) / k
        return torch.minimum(a, b) - 0.25 * h * h * k

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        a, b, k = ctx.saved_tensors
        d = a - b
        h = (k - d.abs()).clamp(min=0) / k
        share_a = (d < 0).to(d.dtype) + 0.5 * h * d.sign()
        grad_a = grad_output * share_a
        grad_b = grad_output * (1 - share_a)
        grad_k = -(grad_output * (0.25 * h * h + 0.5 * h * d.abs() / k)).sum()
        return grad_a, grad_b, grad_k.reshape(k.shape)
