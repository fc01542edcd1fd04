import torch
from torch.autograd.function import once_differentiable


class ChamferDistance(torch.autograd.Function):
    """Squared distance of every point to its nearest neighbour in the other cloud.

    Args:
        xyz1: (B, N, 3)
        xyz2: (B, M, 3)

    Returns:
        dist1 (B, N), dist2 (B, M), idx1 (B, N), idx2 (B, M)

    Of several equally near points the first found is the neighbour, in both directions.
    """

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
        i1 = idx1.unsqueeze(-1).expand(-1, -1, xyz1.size(-1))
        i2 = idx2.unsqueeze(-1).expand(-1, -1, xyz2.size(-1))
        a = 2 * g1.unsqueeze(-1) * (xyz1 - xyz2.gather(1, i1))
        b = 2 * g2.unsqueeze(-1) * (xyz2 - xyz1.gather(1, i2))
        grad1 = a.scatter_add(1, i2, -b)
        grad2 = b.scatter_add(1, i1, -a)
        return grad1, grad2
