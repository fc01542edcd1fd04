import torch
from torch import Tensor


@torch.library.custom_op("packedbed::ergun_gradient", mutates_args=())
def _ergun(v: Tensor, eps: Tensor, d: Tensor, mu: float, rho: float) -> Tensor:
    visc = 150 * mu * (1 - eps) ** 2 / (eps**3 * d**2)
    inert = 1.75 * rho * (1 - eps) / (eps**3 * d)
    return visc * v + inert * v * v.abs()


@_ergun.register_fake
def _(v, eps, d, mu, rho):
    return v + eps + d


def _setup(ctx, inputs, output):
    v, eps, d, ctx.mu, ctx.rho = inputs
    ctx.save_for_backward(v, eps, d)


def _backward(ctx, g):
    v, eps, d = ctx.saved_tensors
    visc = 150 * ctx.mu * (1 - eps) ** 2 / (eps**3 * d**2)
    inert = 1.75 * ctx.rho * (1 - eps) / (eps**3 * d)
    first, second = visc * v, inert * v * v.abs()
    gv = g * (visc + 2 * inert * v.abs())
    geps = -g * (first * (2 / (1 - eps) + 3 / eps) + second * (1 / (1 - eps) + 3 / eps))
    gd = -g * (2 * first + second) / d
    return gv.sum_to_size(v.shape), geps.sum_to_size(eps.shape), gd.sum_to_size(d.shape), None, None


_ergun.register_autograd(_backward, setup_context=_setup)


def ergun_gradient(v, eps, d, mu=1.8e-5, rho=1.2):
    """Pressure gradient [Pa/m] in a packed bed; superficial velocity v [m/s] (signed), voidage eps, particle d [m]."""
    return torch.ops.packedbed.ergun_gradient(v, eps, d, mu, rho)
