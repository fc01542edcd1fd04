import torch
from torch import Tensor


@torch.library.custom_op("fretlab::efficiency", mutates_args=())
def fret_efficiency(donor: Tensor, acceptor: Tensor, fret: Tensor, gamma: Tensor, bleed_d: float, bleed_a: float) -> Tensor:
    fc = fret - bleed_d * donor - bleed_a * acceptor
    return fc / (fc + gamma * donor)


@fret_efficiency.register_fake
def _(donor, acceptor, fret, gamma, bleed_d, bleed_a):
    return torch.empty_like(donor)


def _setup(ctx, inputs, output):
    donor, acceptor, fret, gamma, ctx.bd, ctx.ba = inputs
    ctx.save_for_backward(donor, acceptor, fret, gamma)


def _backward(ctx, g):
    donor, acceptor, fret, gamma = ctx.saved_tensors
    fc = fret - ctx.bd * donor - ctx.ba * acceptor
    m2 = (fc + gamma * donor) ** 2
    g_fc = g * gamma * donor / m2
    g_donor = -g * fc * gamma / m2 - ctx.bd * g_fc
    g_gamma = (-g * fc * donor / m2).sum_to_size(gamma.shape)
    return g_donor, -ctx.ba * g_fc, g_fc, g_gamma, None, None


fret_efficiency.register_autograd(_backward, setup_context=_setup)
