import numpy as np
import torch

R = 8.314462618
_X, _W = np.polynomial.legendre.leggauss(40)


def _einstein(x):
    return (x / 2 / torch.sinh(x / 2)) ** 2


def _average(y):
    """integral over s in (0, 1) of s^2 w(y s)"""
    s = torch.as_tensor((_X + 1) / 2, dtype=y.dtype, device=y.device)
    w = torch.as_tensor(_W / 2, dtype=y.dtype, device=y.device)
    return (w * s * s * _einstein(y[..., None] * s)).sum(-1)


class _Debye(torch.autograd.Function):
    @staticmethod
    def forward(ctx, temp, theta, atoms):
        d = _average(theta / temp)
        ctx.save_for_backward(temp, theta)
        ctx.atoms = atoms
        return 9 * atoms * R * d

    @staticmethod
    def backward(ctx, g):
        temp, theta = ctx.saved_tensors
        y = theta / temp
        d = _average(y)
        gy = 9 * ctx.atoms * R * g * (_einstein(y) - 3 * d) / y
        return (-gy * y / temp).sum_to_size(temp.shape), (gy / temp).sum_to_size(theta.shape), None


def debye_heat_capacity(temp, theta, atoms=1):
    """Molar heat capacity [J/mol/K] in Debye's model; temp and Debye temperature [K] broadcast, temp > theta / 30."""
    return _Debye.apply(temp, theta, atoms)
