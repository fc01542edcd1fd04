import torch
from torch import Tensor


@torch.library.custom_op("aalib::se3_inverse_apply", mutates_args=())
def _se3_inv_apply(R: Tensor, t: Tensor, p: Tensor) -> Tensor:
    return torch.einsum("bij,bni->bnj", R, p - t[:, None])


@_se3_inv_apply.register_fake
def _(R, t, p):
    return torch.empty_like(p)


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _vjp(ctx, g):
    R, t, p = ctx.saved_tensors
    need_R, need_t, need_p = ctx.needs_input_grad
    gR = gt = gp = None
    if need_R:
        gR = torch.einsum("bni,bnj->bij", p - t[:, None], g)
    if need_t or need_p:
        world = torch.einsum("bij,bnj->bni", R, g)
        if need_p:
            gp = world
        elif need_t:
            gt = -world.sum(1)
    return gR, gt, gp


_se3_inv_apply.register_autograd(_vjp, setup_context=_save)


def world_to_camera(pose: Tensor, points: Tensor) -> Tensor:
    """pose: (B, 3, 4) camera-to-world [R | t], points: (B, N, 3) world -> camera, R^T (p - t)"""
    R, t = pose[..., :3], pose[..., 3]
    return _se3_inv_apply(R.contiguous(), t.contiguous(), points)
