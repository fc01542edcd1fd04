import torch
from torch import Tensor


@torch.library.custom_op("fusednorm::power_iter_weight", mutates_args=())
def power_iter_weight(weight: Tensor, u: Tensor, v: Tensor) -> Tensor:
    return weight / torch.dot(u, torch.mv(weight, v))


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g: Tensor):
    weight, u, v = ctx.saved_tensors
    sigma = torch.dot(u, torch.mv(weight, v))
    d_sigma = -(g * weight).sum() / sigma
    d_weight = g / sigma + d_sigma * torch.outer(u, v)
    d_u = d_sigma * (weight @ v) if ctx.needs_input_grad[1] else None
    d_v = d_sigma * (weight.T @ u) if ctx.needs_input_grad[2] else None
    return d_weight, d_u, d_v


power_iter_weight.register_autograd(_backward, setup_context=_setup)


def normalise_weight(weight: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """weight / sigma with sigma = u^T W v of the current power iteration. weight (O, I), u (O,), v (I,)"""
    return torch.ops.fusednorm.power_iter_weight(weight, u, v)
