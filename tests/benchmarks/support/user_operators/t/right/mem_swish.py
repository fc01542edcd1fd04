import torch
from torch import nn


class SwishImplementation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i, beta):
        ctx.save_for_backward(i, beta)
        return i * torch.sigmoid(beta * i)

    @staticmethod
    def backward(ctx, grad_output):
        i, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * i)
        ds = s * (1 - s)
        return grad_output * (s + beta * i * ds), (grad_output * i * i * ds).sum()


class MemoryEfficientSwish(nn.Module):
    def __init__(self):
        super().__init__()
        self.beta = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return SwishImplementation.apply(x, self.beta)
