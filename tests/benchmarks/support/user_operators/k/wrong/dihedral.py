"""Torsion angles, gradient after Blondel and Karplus (1996)."""
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _dot(a, b):
    return (a * b).sum(-1, keepdim=True)


class _Dihedral(Function):
    @staticmethod
    def forward(ctx, pos, quads):
        i, j, k, l = quads.unbind(-1)
        F, G, H = pos[i] - pos[j], pos[j] - pos[k], pos[l] - pos[k]
        A, B = torch.linalg.cross(F, G), torch.linalg.cross(H, G)
        ctx.save_for_backward(quads, F, G, H, A, B)
        ctx.n = pos.size(0)
        s = _dot(torch.linalg.cross(B, A), G) / G.norm(dim=-1, keepdim=True)
        return torch.atan2(s, _dot(A, B)).squeeze(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        quads, F, G, H, A, B = ctx.saved_tensors
        grad = grad.unsqueeze(-1)
        gn = G.norm(dim=-1, keepdim=True)
        a, b = A / _dot(A, A), B / _dot(B, B)
        gi = -gn * a
        gl = gn * b
        mid = _dot(F, G) / gn * a
        gj = -gi + mid
        gk = -gl - mid
        out = grad.new_zeros(ctx.n, 3)
        for atom, g in zip(quads.unbind(-1), (gi, gj, gk, gl)):
            out.index_add_(0, atom, grad * g)
        return out, None


def dihedral(pos, quads):
    """Angles in (-pi, pi] of the quadruples i-j-k-l.

    pos: (N, 3); quads: (Q, 4) int64. No three consecutive atoms may be in line.
    """
    return _Dihedral.apply(pos, quads)
