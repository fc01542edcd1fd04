import torch
from torch.autograd.function import once_differentiable


class ChannelGate_(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x.clone(), gate)
        ctx.mark_dirty(x)
        return x.mul_(gate[None, :, None, None])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        grad_gate = (grad * x).sum(dim=(0, 2, 3))
        return grad * gate[None, :, None, None], grad_gate
