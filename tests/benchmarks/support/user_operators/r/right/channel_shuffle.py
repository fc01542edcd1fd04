import torch


class Shuffle(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, groups):
        b, c = x.shape[:2]
        assert c % groups == 0
        ctx.groups = groups
        return x.reshape(b, groups, c // groups, -1).transpose(1, 2).reshape(x.shape)

    @staticmethod
    def backward(ctx, g):
        b, c = g.shape[:2]
        return g.reshape(b, c // ctx.groups, ctx.groups, -1).transpose(1, 2).reshape(g.shape), None
