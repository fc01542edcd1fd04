import torch
from torch import nn


class BranchTrunk(torch.autograd.Function):
    @staticmethod
    def forward(ctx, branch, trunk, bias):
        ctx.save_for_backward(branch, trunk)
        return torch.einsum("bmp,np->bnm", branch, trunk) / trunk.size(-1) ** 0.5 + bias

    @staticmethod
    def backward(ctx, grad):
        branch, trunk = ctx.saved_tensors
        g = grad / trunk.size(-1) ** 0.5
        return (torch.einsum("bnm,np->bmp", g, trunk),
                torch.einsum("bnm,bmp->np", g, branch),
                grad.sum((0, 2)))


class DeepONetMerge(nn.Module):
    """Multi-output DeepONet head ("split branch").

    branch (batch, outputs * width), trunk (points, width) -> (batch, points, outputs)
    """

    def __init__(self, outputs: int, width: int):
        super().__init__()
        self.outputs, self.width = outputs, width
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, branch, trunk):
        return BranchTrunk.apply(branch.reshape(-1, self.outputs, self.width), trunk, self.bias)
