import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


@torch.library.custom_op("stereo_af::gwc_volume", mutates_args=())
def gwc_volume(left: Tensor, right: Tensor, max_disp: int, groups: int) -> Tensor:
    """Group-wise correlation. left, right (C, H, W) -> (groups, max_disp, H, W)"""
    C, H, W = left.shape
    vol = left.new_zeros(groups, max_disp, H, W)
    for d in range(min(max_disp, W)):
        prod = left[:, :, d:] * right[:, :, :W - d]
        vol[:, d, :, d:] = prod.reshape(groups, C // groups, H, W - d).mean(1)
    return vol


def _setup(ctx, inputs, output):
    left, right, ctx.max_disp, ctx.groups = inputs
    ctx.save_for_backward(left, right)


@once_differentiable
def _backward(ctx, grad):
    left, right = ctx.saved_tensors
    C, H, W = left.shape
    per_group = C // ctx.groups
    g_left, g_right = torch.zeros_like(left), torch.zeros_like(right)
    for d in range(min(ctx.max_disp, W)):
        g = grad[:, d, :, d:].repeat(per_group, 1, 1) / per_group
        g_left[:, :, d:] += g * right[:, :, :W - d]
        g_right[:, :, :W - d] += g * left[:, :, d:]
    return g_left, g_right, None, None


gwc_volume.register_autograd(_backward, setup_context=_setup)
