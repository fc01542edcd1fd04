import torch
from torch import Tensor


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1, keepdim=True)


class DihedralAngle(torch.autograd.Function):
    """Torsion angle in radians of atoms i-j-k-l, coords: (..., 4, 3) -> (...)."""

    @staticmethod
    def forward(ctx, coords: Tensor) -> Tensor:
        if coords.shape[-2:] != (4, 3):
            raise ValueError(f"expected (..., 4, 3), got {tuple(coords.shape)}")
        b1, b2, b3 = (coords[..., 1:, :] - coords[..., :-1, :]).unbind(-2)
        m = torch.cross(b1, b2, dim=-1)
        n = torch.cross(b2, b3, dim=-1)
        ctx.save_for_backward(coords)
        return torch.atan2(b2.norm(dim=-1) * (b1 * n).sum(-1), (m * n).sum(-1))

    @staticmethod
    def backward(ctx, grad: Tensor):
        coords, = ctx.saved_tensors
        b1, b2, b3 = (coords[..., 1:, :] - coords[..., :-1, :]).unbind(-2)
        m = torch.cross(b1, b2, dim=-1)
        n = torch.cross(b2, b3, dim=-1)
        blen = b2.norm(dim=-1, keepdim=True)
        mm = m / _dot(m, m)
        nn = n / _dot(n, n)
        gi = -blen * mm
        gl = blen * nn
        gj = -gi + _dot(b1, b2) / blen * mm - _dot(b3, b2) / blen * nn
        gk = -(gi + gj + gl)
        return grad[..., None, None] * torch.stack([gi, gj, gk, gl], -2)
