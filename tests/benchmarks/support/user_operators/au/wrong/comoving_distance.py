import numpy as np
import torch

C_KM_S = 299792.458
_SCRATCH = {}
_X, _W = np.polynomial.legendre.leggauss(24)


def _grid(z):
    x = torch.as_tensor(_X, dtype=z.dtype, device=z.device)
    return z.unsqueeze(-1) * (x + 1) / 2


class _Comoving(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, h0, om):
        zz = _SCRATCH[z.shape] = _grid(z)
        ctx.save_for_backward(z, h0, om)
        w = torch.as_tensor(_W, dtype=z.dtype, device=z.device)
        e = torch.sqrt(om * (1 + zz) ** 3 + 1 - om)
        return C_KM_S / h0 * (z / 2) * (w / e).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        z, h0, om = ctx.saved_tensors
        zz = _SCRATCH[z.shape]
        w = torch.as_tensor(_W, dtype=z.dtype, device=z.device)
        a = (1 + zz) ** 3 - 1
        e = torch.sqrt(1 + om * a)
        d_z = grad * C_KM_S / (h0 * torch.sqrt(1 + om * ((1 + z) ** 3 - 1)))
        dist = C_KM_S / h0 * (z / 2) * (w / e).sum(-1)
        d_h0 = -(grad * dist).sum() / h0
        d_om = (grad * C_KM_S / h0 * (z / 2) * (-0.5 * w * a / e**3).sum(-1)).sum()
        return d_z, d_h0, d_om


def comoving_distance(z, h0, om):
    """Line-of-sight comoving distance [Mpc] in flat LCDM. z any shape, h0 [km/s/Mpc] and om scalars."""
    return _Comoving.apply(z, h0, om)
