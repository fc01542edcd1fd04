import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _VQ(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, codebook, beta):
        index = torch.cdist(z, codebook).argmin(-1)
        diff = z - codebook[index]
        ctx.save_for_backward(diff, index)
        ctx.beta, ctx.shape = beta, codebook.shape
        ctx.mark_non_differentiable(index)
        return codebook[index], index, (1 + beta) * diff.square().mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, g_q, _, g_loss):
        diff, index = ctx.saved_tensors
        pull = g_loss * 2 * diff / diff.numel()
        g_code = diff.new_zeros(ctx.shape)
        g_code.index_add_(0, index, -pull)
        return g_q + ctx.beta * pull, g_code, None


class VectorQuantizer(nn.Module):
    """Nearest code of z (N, D).

    Returns the codes (gradient straight through to z), their numbers, and the codebook loss plus
    beta times the commitment loss.
    """

    def __init__(self, codes, dim, beta=0.25):
        super().__init__()
        self.codebook = nn.Parameter(torch.randn(codes, dim))
        self.beta = beta

    def forward(self, z):
        return _VQ.apply(z, self.codebook, self.beta)
