import torch


def norm_except(v, dim):
    dims = [d for d in range(v.dim()) if d != dim]
    return v.pow(2).sum(dims, keepdim=True).sqrt()


class WeightNorm(torch.autograd.Function):
    """w = g * v / ||v||, one norm per slice along `dim` (>= 0); g has size 1 in all other dims"""

    @staticmethod
    def forward(ctx, v, g, dim=0):
        ctx.dim = dim
        ctx.save_for_backward(v, g)
        return v * (g / norm_except(v, dim))

    @staticmethod
    def backward(ctx, grad_w):
        v, g = ctx.saved_tensors
        dims = [d for d in range(v.dim()) if d != ctx.dim]
        n = norm_except(v, ctx.dim)
        dot = (grad_w * v).sum(dims, keepdim=True)
        grad_g = dot / n
        grad_v = g / n * (grad_w - v * dot / n)
        return grad_v, grad_g, None
