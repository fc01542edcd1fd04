import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _cell(coords: Tensor, resolution: int) -> Tensor:
    c = coords.clamp(0, resolution - 1)
    return (c[:, 0] * resolution + c[:, 1]) * resolution + c[:, 2]


@torch.library.custom_op("pvcnn_af::avg_voxelize", mutates_args=())
def avg_voxelize(features: Tensor, coords: Tensor, resolution: int) -> Tensor:
    """features (C, N), coords (N, 3) int64 -> (C, R, R, R) mean of the points in every voxel"""
    C = features.shape[0]
    cell = _cell(coords, resolution)
    total = features.new_zeros(C, resolution ** 3).index_add_(1, cell, features)
    count = torch.bincount(cell, minlength=resolution ** 3).clamp(min=1)
    return (total / count).view(C, resolution, resolution, resolution)


def setup_context(ctx, inputs, output):
    _, coords, ctx.resolution = inputs
    ctx.save_for_backward(coords)


@once_differentiable
def backward(ctx, grad):
    (coords,) = ctx.saved_tensors
    cell = _cell(coords, ctx.resolution)
    count = torch.bincount(cell, minlength=ctx.resolution ** 3).clamp(min=1)
    flat = grad.reshape(grad.shape[0], -1) / count
    return flat[:, cell], None, None


avg_voxelize.register_autograd(backward, setup_context=setup_context)
