import torch
from torch.linalg import cross


class Plucker(torch.autograd.Function):
    @staticmethod
    def forward(ctx, origin, direction):
        u = direction / direction.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(origin, direction)
        return u, cross(origin, u)

    @staticmethod
    def backward(ctx, gu, gm):
        origin, direction = ctx.saved_tensors
        n = direction.norm(dim=-1, keepdim=True)
        u = direction / n
        go = cross(u, gm)
        gt = gu + cross(origin, gm).sum_to_size(u.shape)
        gd = (gt - u * (u * gt).sum(-1, keepdim=True)) / n
        return go.sum_to_size(origin.shape), gd
