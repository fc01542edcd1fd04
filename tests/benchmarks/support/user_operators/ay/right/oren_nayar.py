import torch
from torch import Tensor


def _terms(nl, nv, lv, sigma):
    s = lv - nl * nv
    t = torch.where(s > 0, torch.maximum(nl, nv), torch.ones_like(s))
    s2 = sigma * sigma
    return s, t, 1 - 0.5 * s2 / (s2 + 0.33), 0.45 * s2 / (s2 + 0.09)


# nl, nv in (0, 1], lv in [-1, 1], all the same shape; sigma () or broadcastable to it
@torch.library.custom_op("shadelab::oren_nayar", mutates_args=())
def oren_nayar(nl: Tensor, nv: Tensor, lv: Tensor, sigma: Tensor) -> Tensor:
    s, t, A, B = _terms(nl, nv, lv, sigma)
    return nl * (A + B * s / t)


@oren_nayar.register_fake
def _(nl, nv, lv, sigma):
    return torch.empty_like(nl)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g):
    nl, nv, lv, sigma = ctx.saved_tensors
    s, t, A, B = _terms(nl, nv, lv, sigma)
    s2 = sigma * sigma
    gs = g * nl * B / t
    gt = torch.where(s > 0, -gs * s / t, torch.zeros_like(s))
    share = 0.5 * ((nl > nv).to(g.dtype) + (nl >= nv).to(g.dtype))
    g_nl = g * (A + B * s / t) - gs * nv + share * gt
    g_nv = -gs * nl + (1 - share) * gt
    dA = -0.165 / (s2 + 0.33) ** 2
    dB = 0.0405 / (s2 + 0.09) ** 2
    g_sigma = g * nl * (dA + dB * s / t) * 2 * sigma
    return g_nl, g_nv, gs, g_sigma.sum_to_size(sigma.shape)


oren_nayar.register_autograd(_backward, setup_context=_setup)
