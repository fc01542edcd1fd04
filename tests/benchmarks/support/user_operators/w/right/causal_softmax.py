import torch


class CausalSoftmax(torch.autograd.Function):
    # Megatron-style scaled softmax with an upper triangular mask, x: (..., L, L)
    @staticmethod
    def forward(ctx, x, scale):
        n = x.shape[-1]
        hide = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        y = torch.softmax((x * scale).masked_fill(hide, float("-inf")), dim=-1)
        ctx.save_for_backward(y)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensors
        dx = (dy - (dy * y).sum(-1, keepdim=True)) * y
        return dx * ctx.scale, None
