import torch
from torch import Tensor


class CoordinationNumber(torch.autograd.Function):
    """DFT-D3 fractional coordination number. pos (N, 3), rcov (N,), pairs (2, P) each pair once"""

    @staticmethod
    def forward(ctx, pos: Tensor, rcov: Tensor, pairs: Tensor, k1: float = 16.0, cutoff: float = None) -> Tensor:
        ctx.save_for_backward(pos, rcov, pairs)
        ctx.k1, ctx.cutoff = k1, cutoff
        c = CoordinationNumber.count(pos, rcov, pairs, k1, cutoff)[0]
        i, j = pairs
        return torch.zeros_like(rcov).index_add(0, i, c).index_add(0, j, c)

    @staticmethod
    def count(pos, rcov, pairs, k1, cutoff):
        i, j = pairs
        vec = pos[i] - pos[j]
        d = vec.norm(dim=-1)
        rc = 4.0 / 3.0 * (rcov[i] + rcov[j])
        c = torch.sigmoid(k1 * (rc / d - 1))
        if cutoff is not None:
            c = torch.where(d <= cutoff, c, torch.zeros_like(c))
        return c, vec, d, rc

    @staticmethod
    def backward(ctx, grad_cn):
        pos, rcov, pairs = ctx.saved_tensors
        i, j = pairs
        c, vec, d, rc = CoordinationNumber.count(pos, rcov, pairs, ctx.k1, ctx.cutoff)
        g = 2 * grad_cn[i] * c * (1 - c) * ctx.k1
        g_vec = (-g * rc / d ** 3).unsqueeze(-1) * vec
        g_r = g * (4.0 / 3.0) / d
        g_pos = torch.zeros_like(pos).index_add(0, i, g_vec).index_add(0, j, -g_vec)
        g_rcov = torch.zeros_like(rcov).index_add(0, i, g_r).index_add(0, j, g_r)
        return g_pos, g_rcov, None, None, None
