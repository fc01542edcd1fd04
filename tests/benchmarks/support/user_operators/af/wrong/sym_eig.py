import torch
from torch.autograd.function import once_differentiable


class SymEig(torch.autograd.Function):
    """Eigenvalues and vectors of (A + A^T) / 2, for distinct eigenvalues."""

    @staticmethod
    def forward(ctx, A):
        w, V = torch.linalg.eigh(0.5 * (A + A.mT))
        # sign: the largest component of every vector is positive
        s = torch.gather(V, -2, V.abs().argmax(-2, keepdim=True)).sign()
        V = V * s
        ctx.save_for_backward(w, V)
        return w, V

    @staticmethod
    @once_differentiable
    def backward(ctx, gw, gV):
        w, V = ctx.saved_tensors
        gap = w.unsqueeze(-2) - w.unsqueeze(-1)
        gap.diagonal(dim1=-2, dim2=-1).fill_(float("inf"))
        inner = (gV.mT @ V) / gap
        inner = inner + torch.diag_embed(gw)
        G = V @ inner @ V.mT
        return 0.5 * (G + G.mT)
