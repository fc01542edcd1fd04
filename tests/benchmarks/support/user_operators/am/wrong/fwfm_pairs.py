import torch
from torch import nn


class _FwFM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, emb, r):
        ctx.save_for_backward(emb, r)
        w = torch.triu(r, 1)
        return 0.5 * torch.einsum("bid,ij,bjd->b", emb, w + w.t(), emb)

    @staticmethod
    def backward(ctx, g):
        emb, r = ctx.saved_tensors
        w = torch.triu(r, 1)
        ge = g[:, None, None] * ((w + w.t()) @ emb)
        gr = torch.einsum("b,bid,bjd->ij", g, emb, emb)
        return ge, gr


class FieldWeightedFM(nn.Module):
    """(B, fields, dim) -> (B,): sum over field pairs i < j of r[i, j] <e_i, e_j>"""

    def __init__(self, fields):
        super().__init__()
        self.r = nn.Parameter(torch.empty(fields, fields))
        nn.init.xavier_uniform_(self.r)

    def forward(self, emb):
        return _FwFM.apply(emb, self.r)
