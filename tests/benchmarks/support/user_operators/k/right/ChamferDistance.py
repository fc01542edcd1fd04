import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ChamferDistance(Function):
    # (B, N, D), (B, M, D) -> squared distances (B, N), (B, M) and indices of the neighbours

    @staticmethod
    def forward(ctx, xyz1, xyz2):
        d = (xyz1.unsqueeze(2) - xyz2.unsqueeze(1)).pow(2).sum(-1)
        dist1, idx1 = d.min(2)
        dist2, idx2 = d.min(1)
        ctx.save_for_backward(xyz1, xyz2, idx1, idx2)
        ctx.mark_non_differentiable(idx1, idx2)
        return dist1, dist2, idx1, idx2

    @staticmethod
    @once_differentiable
    def backward(ctx, g1, g2, _i1, _i2):
        xyz1, xyz2, idx1, idx2 = ctx.saved_tensors
        i1 = idx1.unsqueeze(-1).expand_as(xyz1)
        i2 = idx2.unsqueeze(-1).expand_as(xyz2)
        v1 = 2 * g1.unsqueeze(-1) * (xyz1 - xyz2.gather(1, i1))
        v2 = 2 * g2.unsqueeze(-1) * (xyz2 - xyz1.gather(1, i2))
        gx1 = v1 - torch.zeros_like(v1).scatter_add_(1, i2, v2)
        gx2 = v2 - torch.zeros_like(v2).scatter_add_(1, i1, v1)
        return gx1, gx2


def chamfer(a, b):
    d1, d2, _, _ = ChamferDistance.apply(a, b)
    return d1.mean() + d2.mean()
