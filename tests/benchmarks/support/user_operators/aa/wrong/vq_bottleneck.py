import torch
from torch import nn


class _Quantize(torch.autograd.Function):
    # nearest codeword; the latent passes straight through, the codebook gets what its rows received

    @staticmethod
    def forward(ctx, z, codebook):
        idx = torch.cdist(z, codebook).argmin(1)
        ctx.save_for_backward(idx)
        ctx.codebook_shape = codebook.shape
        ctx.mark_non_differentiable(idx)
        return codebook[idx], idx

    @staticmethod
    def backward(ctx, g, _):
        (idx,) = ctx.saved_tensors
        gz = gc = None
        if ctx.needs_input_grad[0]:
            gz = g.clone()
        if ctx.needs_input_grad[1]:
            gc = g.new_zeros(ctx.codebook_shape).index_copy(0, idx, g)
        return gz, gc


class VectorQuantizer(nn.Module):
    """Quantise latents (N, D) with a codebook (K, D); straight-through for the latents."""

    def __init__(self, K, D, seed=0):
        super().__init__()
        gen = torch.Generator().manual_seed(seed)
        self.codebook = nn.Parameter(torch.randn(K, D, generator=gen))

    def forward(self, z):
        zq, idx = _Quantize.apply(z, self.codebook)
        return zq, idx
