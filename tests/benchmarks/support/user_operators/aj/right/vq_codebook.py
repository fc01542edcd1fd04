import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class VQ(torch.autograd.Function):
    """z (N, D), codebook (K, D) -> quantised (N, D), loss (), code index (N,)

    Straight through from the quantised to z; loss = beta |z - sg(e)|^2 + |sg(z) - e|^2, means.
    """

    @staticmethod
    def forward(ctx, z, codebook, beta):
        idx = torch.cdist(z, codebook).argmin(1)
        e = codebook[idx]
        ctx.save_for_backward(z, codebook, idx)
        ctx.beta = beta
        ctx.mark_non_differentiable(idx)
        return e, (1 + beta) * ((z - e) ** 2).mean(), idx

    @staticmethod
    @once_differentiable
    def backward(ctx, gq, gl, _):
        z, codebook, idx = ctx.saved_tensors
        d = 2 * gl * (z - codebook[idx]) / z.numel()
        gc = torch.zeros_like(codebook).index_add_(0, idx, -d)
        return gq + ctx.beta * d, gc, None


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes, dim, beta=0.25):
        super().__init__()
        self.codebook = nn.Parameter(torch.randn(n_codes, dim))
        self.beta = beta

    def forward(self, z):
        return VQ.apply(z, self.codebook, self.beta)
