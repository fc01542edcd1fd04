import torch


class BiasDropoutAdd(torch.autograd.Function):
    """residual + dropout(x + bias) with a mask that was drawn before (activation checkpointing)"""

    @staticmethod
    def forward(ctx, x, bias, residual, keep_mask, p: float = 0.1):
        ctx.save_for_backward(keep_mask)
        ctx.scale = 1.0 / (1.0 - p)
        out = (x + bias) * keep_mask * ctx.scale
        return out + residual

    @staticmethod
    def backward(ctx, grad_out):
        keep_mask, = ctx.saved_tensors
        grad_x = grad_out * keep_mask
        grad_x = grad_x * ctx.scale
        grad_bias = grad_x.reshape(-1, grad_x.shape[-1]).sum(0)
        return grad_x, grad_bias, grad_out, None, None
