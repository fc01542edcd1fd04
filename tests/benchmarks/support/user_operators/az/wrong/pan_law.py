import math

import torch
from torch.autograd import Function


class PanLaw(Function):
    @staticmethod
    def forward(ctx, mono, pan):
        assert mono.dim() == 2 and pan.shape == mono.shape[:1]
        ctx.save_for_backward(mono, pan)
        angle = (pan + 1) * (math.pi / 4)
        gains = torch.stack([angle.cos(), angle.sin()], 1)
        return gains[..., None] * mono[:, None]

    @staticmethod
    def backward(ctx, grad):
        mono, pan = ctx.saved_tensors
        angle = (pan + 1) * (math.pi / 4)
        left, right = (grad * mono[:, None]).sum(-1).unbind(1)
        grad_pan = math.pi / 4 * (right * angle.cos() - left * angle.sin())
        gains = torch.stack([angle.cos(), angle.sin()], 1)
        grad_mono = grad.mul_(gains[..., None]).sum(1)
        return grad_mono, grad_pan
