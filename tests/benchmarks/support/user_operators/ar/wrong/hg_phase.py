import math

import torch
from torch import Tensor

NAMESPACE = __name__.split(".")[-1]


@torch.library.custom_op(f"{NAMESPACE}::hg_phase", mutates_args=())
def hg_phase(cos_theta: Tensor, g: Tensor) -> Tensor:
    """Henyey-Greenstein phase function; g broadcasts against cos_theta, |g| < 1."""
    denom = 1 + g * g - 2 * g * cos_theta
    return (1 - g * g) / (4 * math.pi * denom * denom.sqrt())


@hg_phase.register_fake
def _(cos_theta, g):
    return torch.empty(torch.broadcast_shapes(cos_theta.shape, g.shape), dtype=cos_theta.dtype, device=cos_theta.device)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, grad):
    cos_theta, g = ctx.saved_tensors
    denom = 1 + g * g - 2 * g * cos_theta
    common = grad / (4 * math.pi * denom ** 2.5)
    d_cos = common * 3 * g * (1 - g * g)
    d_g = common * (-2 * g * denom - 1.5 * (1 - g * g) * (g - cos_theta))
    return d_cos.sum_to_size(cos_theta.shape), d_g.sum_to_size(g.shape)


hg_phase.register_autograd(_backward, setup_context=_setup)
