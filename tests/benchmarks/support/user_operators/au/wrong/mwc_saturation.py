import torch
from torch import Tensor


@torch.library.custom_op("allostery::mwc", mutates_args=())
def _mwc(alpha: Tensor, big_l: Tensor, c: Tensor, sites: int) -> Tensor:
    a, b = 1 + alpha, 1 + c * alpha
    top = alpha * a ** (sites - 1) + big_l * c * alpha * b ** (sites - 1)
    return top / (a**sites + big_l * b**sites)


@_mwc.register_fake
def _(alpha, big_l, c, sites):
    return alpha + big_l + c


def _setup(ctx, inputs, output):
    alpha, big_l, c, ctx.sites = inputs
    ctx.save_for_backward(alpha, big_l, c)


def _backward(ctx, g):
    alpha, L, c = ctx.saved_tensors
    n = ctx.sites
    a, b = 1 + alpha, 1 + c * alpha
    bot = a**n + L * b**n
    y = (alpha * a ** (n - 1) + L * c * alpha * b ** (n - 1)) / bot
    g = g / bot
    a1, b1 = a ** (n - 1), b ** (n - 1)
    a2, b2 = 3 * alpha * a ** (n - 2), 3 * alpha * b ** (n - 2)
    d_alpha = a1 + a2 + L * c * (b1 + c * b2) - y * n * (a1 + L * c * b1)
    d_l = c * alpha * b1 - y * b**n
    d_c = L * alpha * (b1 + c * b2) - y * n * L * alpha * b1
    return (g * d_alpha).sum_to_size(alpha.shape), (g * d_l).sum_to_size(L.shape), (g * d_c).sum_to_size(c.shape), None


_mwc.register_autograd(_backward, setup_context=_setup)


def mwc_saturation(alpha, big_l, c, sites=4):
    """Fractional saturation of a Monod-Wyman-Changeux protein.

    alpha ligand over K_R (>= 0), big_l allosteric constant, c = K_R / K_T; sites >= 2
    """
    return torch.ops.allostery.mwc(alpha, big_l, c, sites)
