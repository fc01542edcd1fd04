import torch
from torch import nn


class TTLookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, idx, left, right):
        """idx (L,), left (V1, E1, R), right (R, V2, E2) -> (L, E1 * E2)"""
        ctx.save_for_backward(idx, left, right)
        n2 = right.shape[1]
        rows = torch.einsum("ler,rlf->lef", left[idx // n2], right[:, idx % n2])
        return rows.flatten(1)

    @staticmethod
    def backward(ctx, g):
        idx, left, right = ctx.saved_tensors
        n1, e1, _ = left.shape
        _, n2, e2 = right.shape
        g = g.reshape(-1, e1, e2)
        i, j = idx // n2, idx % n2
        gl = torch.zeros_like(left).index_add(0, i, torch.einsum("lef,rlf->ler", g, right[:, j]))
        gr = torch.zeros_like(right).index_add(1, j, torch.einsum("lef,ler->rlf", g, left[i]))
        return None, gl, gr


class TTEmbedding(nn.Module):
    """Two-core tensor train embedding for vocabularies of v1 * v2 entries."""

    def __init__(self, v1, v2, e1, e2, rank):
        super().__init__()
        self.left = nn.Parameter(torch.randn(v1, e1, rank) * 0.1)
        self.right = nn.Parameter(torch.randn(rank, v2, e2) * 0.1)

    def forward(self, idx):
        out = TTLookup.apply(idx.flatten(), self.left, self.right)
        return out.view(*idx.shape, -1)
