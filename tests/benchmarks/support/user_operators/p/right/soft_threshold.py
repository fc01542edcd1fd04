import torch


class SoftThreshold(torch.autograd.Function):
    """Shrinkage step of unrolled ISTA; codes (B, C, ...), one threshold lam >= 0 per channel."""

    @staticmethod
    def forward(ctx, codes, lam):
        thr = lam.view(1, -1, *[1] * (codes.dim() - 2))
        ctx.save_for_backward(codes, lam)
        return torch.sign(codes) * torch.relu(codes.abs() - thr)

    @staticmethod
    def backward(ctx, grad_output):
        codes, lam = ctx.saved_tensors
        thr = lam.view(1, -1, *[1] * (codes.dim() - 2))
        grad = grad_output.masked_fill(codes.abs() <= thr, 0)
        dims = [0] + list(range(2, codes.dim()))
        return grad, -(grad * torch.sign(codes)).sum(dims)
