import torch
from torch import Tensor
from torch.autograd import Function


class DynamicScatterMean(Function):
    """Average the features of all the points that fall in a voxel.

    ``coors`` holds the voxel number of each point; points outside the range carry -1 and are
    dropped. Returns the pooled features [num_voxels, C] and the number of points per voxel.
    """

    @staticmethod
    def forward(ctx, feats: Tensor, coors: Tensor, num_voxels: int):
        keep = coors >= 0
        count = torch.bincount(coors[keep], minlength=num_voxels)
        out = feats.new_zeros(num_voxels, feats.size(1))
        out.index_add_(0, coors[keep], feats[keep])
        out /= count.clamp(min=1).to(feats.dtype).unsqueeze(1)
        ctx.save_for_backward(coors, count)
        ctx.mark_non_differentiable(count)
        return out, count

    @staticmethod
    def backward(ctx, grad_out: Tensor, _grad_count=None):
        coors, count = ctx.saved_tensors
        share = grad_out / count.clamp(min=1).to(grad_out.dtype).unsqueeze(1)
        grad_feats = share[coors]
        grad_feats = grad_feats.masked_fill((coors < 0).unsqueeze(1), 0.0)
        return grad_feats, None, None
