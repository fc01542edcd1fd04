import torch
from torch import nn
from torch.autograd.function import once_differentiable


def leaf_bits(depth, device=None):
    leaf = torch.arange(2 ** depth, device=device)
    return (leaf[:, None] >> torch.arange(depth, device=device)) & 1


class TreeFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, leaves):
        s = torch.sigmoid(logits)
        bits = leaf_bits(logits.shape[1], logits.device).bool()
        fac = torch.where(bits, s[:, None], 1 - s[:, None])
        ctx.save_for_backward(s, leaves, bits, fac)
        return fac.prod(-1) @ leaves

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        s, leaves, bits, fac = ctx.saved_tensors
        gp = g @ leaves.T
        sgn = bits.to(s.dtype)
        gs = torch.empty_like(s)
        for d in range(s.shape[1]):
            others = fac[..., :d].prod(-1) * fac[..., d + 1:].prod(-1)
            gs[:, d] = (gp * others * sgn[:, d]).sum(1)
        return gs * s * (1 - s), fac.prod(-1).T @ g


class ObliviousTree(nn.Module):
    def __init__(self, in_features, depth, out_features):
        super().__init__()
        self.split = nn.Linear(in_features, depth)
        self.leaves = nn.Parameter(torch.randn(2 ** depth, out_features))

    def forward(self, x):
        return TreeFunction.apply(self.split(x), self.leaves)
