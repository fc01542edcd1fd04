import uuid

import torch
from torch import Tensor

_name = f"cam_{uuid.uuid4().hex[:12]}::project"


@torch.library.custom_op(_name, mutates_args=())
def project_points(points: Tensor, intrinsics: Tensor) -> Tensor:
    """(N, 3) points in the camera's frame, intrinsics fx, fy, cx, cy -> (N, 2) pixels"""
    fx, fy, cx, cy = intrinsics.unbind(0)
    x, y, z = points.unbind(-1)
    return torch.stack([fx * x / z + cx, fy * y / z + cy], -1)


def _setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g):
    points, intrinsics = ctx.saved_tensors
    fx, fy, _, _ = intrinsics.unbind(0)
    x, y, z = points.unbind(-1)
    gu, gv = g.unbind(-1)
    gpoints = gintr = None
    if ctx.needs_input_grad[0]:
        gz = -(gu * fx * x + gv * fy * y) / z
        gpoints = torch.stack([gu * fx / z, gv * fy / z, gz], -1)
    if ctx.needs_input_grad[1]:
        gintr = torch.stack([(gu * x / z).sum(), (gv * y / z).sum(), gu.sum(), gv.sum()])
    return gpoints, gintr


project_points.register_autograd(_backward, setup_context=_setup_context)
