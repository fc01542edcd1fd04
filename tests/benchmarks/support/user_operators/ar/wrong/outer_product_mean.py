import torch
from torch import nn


class MaskedOuterMean(torch.autograd.Function):
    """a (S, N, c), b (S, N, d), mask (S, N) -> (N, N, c, d)"""

    @staticmethod
    def forward(ctx, a, b, mask, eps):
        m = mask.unsqueeze(-1)
        norm = (mask.t() @ mask + eps)[..., None, None]
        ctx.save_for_backward(a, b, mask)
        ctx.eps = eps
        return torch.einsum("sic,sjd->ijcd", a * m, b * m) / norm

    @staticmethod
    def backward(ctx, g):
        a, b, mask = ctx.saved_tensors
        m = mask.unsqueeze(-1)
        g = g / (mask.t() @ mask + ctx.eps)[..., None, None]
        da = torch.einsum("ijcd,sjd->sic", g, b * m) * m
        db = torch.einsum("ijcd,sic->sjd", g, a * m)
        return da, db, None, None


class OuterProductMean(nn.Module):
    def __init__(self, c_m, c_hidden, c_z, eps=1e-3):
        super().__init__()
        self.linear_a = nn.Linear(c_m, c_hidden, bias=False)
        self.linear_b = nn.Linear(c_m, c_hidden, bias=False)
        self.linear_out = nn.Linear(c_hidden ** 2, c_z)
        self.eps = eps

    def forward(self, m, mask=None):
        """m (S, N, c_m) msa embedding, mask (S, N) -> pair update (N, N, c_z)"""
        if mask is None:
            mask = m.new_ones(m.shape[:2])
        outer = MaskedOuterMean.apply(self.linear_a(m), self.linear_b(m), mask, self.eps)
        return self.linear_out(outer.flatten(-2))
