"""Fan's bilinear mixing model for hyperspectral unmixing."""
import torch
from torch import nn


class _FanMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, abund, endm):
        i, j = torch.triu_indices(endm.shape[0], endm.shape[0], 1, device=endm.device)
        ctx.save_for_backward(abund, endm, i, j)
        return abund @ endm + (abund[:, i] * abund[:, j]) @ (endm[i] * endm[j])

    @staticmethod
    def backward(ctx, grad):
        abund, endm, i, j = ctx.saved_tensors
        # every pair belongs to both of its materials
        d_pair = grad @ (endm[i] * endm[j]).t()
        d_abund = grad @ endm.t()
        d_abund = d_abund.index_add(1, i, d_pair * abund[:, j])
        d_abund = d_abund.index_add(1, j, d_pair * abund[:, i])
        d_prod = (abund[:, i] * abund[:, j]).t() @ grad
        d_endm = abund.t() @ grad
        d_endm = d_endm.index_add(0, i, d_prod * endm[j])
        d_endm = d_endm.index_add(0, j, d_prod * endm[i])
        return d_abund, d_endm


class FanUnmixing(nn.Module):
    """Decoder: abundances (N, K) -> spectra (N, C).

    Args:
        n_endmembers: K
        n_bands: C
        normalise: softmax the abundances first
    """

    def __init__(self, n_endmembers, n_bands, normalise=True):
        super().__init__()
        self.endmembers = nn.Parameter(torch.rand(n_endmembers, n_bands))
        self.normalise = normalise

    def forward(self, abund):
        if self.normalise:
            abund = abund.softmax(-1)
        return _FanMix.apply(abund, self.endmembers)
