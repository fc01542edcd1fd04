import torch
import torch.nn as nn
import torch.nn.functional as F


class MishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        t = torch.tanh(F.softplus(x))
        ctx.save_for_backward(x)
        return x * t

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        t = torch.tanh(F.softplus(x))
        return grad_output * (t + x * torch.sigmoid(x) * (1 - t * t))


class MemoryEfficientMish(nn.Module):
    def forward(self, x):
        return MishFunction.apply(x)
