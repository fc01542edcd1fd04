import torch
from torch import Tensor


@torch.library.custom_op("voxelops_v1::mean", mutates_args=())
def voxel_mean_op(feats: Tensor, voxel: Tensor, num_voxels: int) -> Tensor:
    inside = voxel >= 0
    out = feats.new_zeros(num_voxels, feats.size(1))
    out.index_add_(0, voxel[inside], feats[inside])
    count = torch.bincount(voxel[inside], minlength=num_voxels).clamp(min=1)
    return out / count[:, None]


@voxel_mean_op.register_fake
def _(feats, voxel, num_voxels):
    return feats.new_empty(num_voxels, feats.size(1))


def _save(ctx, inputs, output):
    _, voxel, ctx.num_voxels = inputs
    ctx.save_for_backward(voxel)


def _grad(ctx, grad):
    (voxel,) = ctx.saved_tensors
    inside = voxel >= 0
    count = torch.bincount(voxel[inside], minlength=ctx.num_voxels).clamp(min=1)
    grad = grad / count[:, None]
    return grad[voxel] * inside[:, None], None, None


voxel_mean_op.register_autograd(_grad, setup_context=_save)


def voxel_mean(feats, voxel, num_voxels=None):
    """Mean feature of each voxel, zeros where empty.

    feats (N, C), voxel (N,) ids, negative for points outside of the grid.
    """
    if num_voxels is None:
        num_voxels = int(voxel.max()) + 1
    return voxel_mean_op(feats, voxel.clamp(min=-1), num_voxels)
