import torch


class L2Normalize(torch.autograd.Function):
    """x / max(|x|, eps) along ``dim``"""

    @staticmethod
    def forward(ctx, x, dim=-1, eps=1e-12):
        if x.is_complex():
            raise TypeError("L2Normalize: expected real floating point tensors")
        norm = x.norm(dim=dim, keepdim=True)
        ctx.save_for_backward(x)
        ctx.dim, ctx.eps = dim, eps
        return x / norm.clamp(min=eps)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        norm = x.norm(dim=ctx.dim, keepdim=True)
        denom = norm.clamp(min=ctx.eps)
        y = x / denom
        proj = (grad * y).sum(ctx.dim, keepdim=True) * (norm > ctx.eps)
        return (grad - y * proj) / denom, None, None
