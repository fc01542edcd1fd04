import torch


class ChamferDistance(torch.autograd.Function):
    # xyz1: N x D, xyz2: M x D
    # dist1: N, dist2: M, idx1: N (into xyz2), idx2: M (into xyz1)

    @staticmethod
    def forward(ctx, xyz1, xyz2):
        d = (xyz1.unsqueeze(1) - xyz2.unsqueeze(0)).pow(2).sum(-1)
        dist1, idx1 = d.min(dim=1)
        dist2, idx2 = d.min(dim=0)
        ctx.save_for_backward(xyz1, xyz2, idx1, idx2)
        ctx.mark_non_differentiable(idx1, idx2)
        return dist1, dist2, idx1, idx2

    @staticmethod
    def backward(ctx, graddist1, graddist2, *_):
        xyz1, xyz2, idx1, idx2 = ctx.saved_tensors
        pull1 = 2 * graddist1[:, None] * (xyz1 - xyz2[idx1])
        pull2 = 2 * graddist2[:, None] * (xyz2 - xyz1[idx2])
        gradxyz1 = torch.index_add(pull1, 0, idx2, -pull2)
        gradxyz2 = pull2.index_put((idx1,), pull2[idx1] - pull1)
        return gradxyz1, gradxyz2
