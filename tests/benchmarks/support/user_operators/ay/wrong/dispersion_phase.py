import torch


class _Dispersion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, S, a2, a3):
        k = torch.linspace(-1, 1, S.shape[-1], dtype=a2.dtype, device=a2.device)
        rot = torch.exp(-1j * (a2 * k ** 2 + a3 * k ** 3))
        ctx.save_for_backward(S, a2, a3)
        _Dispersion.rot = rot
        return S * rot

    @staticmethod
    def backward(ctx, g):
        S, a2, a3 = ctx.saved_tensors
        k = torch.linspace(-1, 1, S.shape[-1], dtype=a2.dtype, device=a2.device)
        rot = _Dispersion.rot
        gphi = (g.conj() * (S * rot)).imag
        return g * rot.conj(), (gphi * k ** 2).sum(), (gphi * k ** 3).sum()


def compensate_dispersion(S, a2, a3):
    """OCT spectrum S complex (..., K), a2 and a3 scalars"""
    return _Dispersion.apply(S, a2, a3)
