import math

import torch
from torch import Tensor


def _half_steps(nu: Tensor, p: int) -> Tensor:
    return (nu[..., None] - torch.arange(p, dtype=nu.dtype, device=nu.device)) / 2


@torch.library.custom_op("stats_af::wishart_lognorm", mutates_args=())
def wishart_lognorm(nu: Tensor, logdet: Tensor, p: int) -> Tensor:
    """Log of the Wishart density's constant for nu > p - 1 degrees of freedom and log |V|:
    -nu p / 2 log 2 - nu / 2 log |V| - log Gamma_p(nu / 2);  nu and logdet of one shape"""
    mvl = torch.lgamma(_half_steps(nu, p)).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
    return -0.5 * nu * (p * math.log(2.0) + logdet) - mvl


def _setup(ctx, inputs, output):
    nu, logdet, ctx.p = inputs
    ctx.save_for_backward(nu, logdet)


def _backward(ctx, grad):
    nu, logdet = ctx.saved_tensors
    psi = torch.digamma(_half_steps(nu, ctx.p)).sum(-1)
    g_nu = grad * (-0.5 * (ctx.p * math.log(2.0) + logdet) - 0.5 * psi)
    g_logdet = grad * (-0.5 * nu)
    return g_nu, g_logdet, None


wishart_lognorm.register_autograd(_backward, setup_context=_setup)
