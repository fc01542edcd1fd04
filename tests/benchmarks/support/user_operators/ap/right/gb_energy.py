import torch
from torch import Tensor


def _still(xyz: Tensor, radii: Tensor):
    diff = xyz[:, None] - xyz
    s = (diff * diff).sum(-1)
    P = radii[:, None] * radii
    return diff, s, P, torch.exp(-s / (4 * P))


@torch.library.custom_op("bornlib::gb_energy", mutates_args=())
def _gb_energy(xyz: Tensor, q: Tensor, radii: Tensor, tau: float) -> Tensor:
    _, s, P, x = _still(xyz, radii)
    return -tau / 2 * (q[:, None] * q / (s + P * x).sqrt()).sum()


@_gb_energy.register_fake
def _(xyz, q, radii, tau):
    return q.new_empty(())


def _setup(ctx, inputs, output):
    xyz, q, radii, tau = inputs
    ctx.save_for_backward(xyz, q, radii)
    ctx.tau = tau


def _backward(ctx, g):
    xyz, q, radii = ctx.saved_tensors
    diff, s, P, x = _still(xyz, radii)
    f2 = s + P * x
    qq = q[:, None] * q
    gf2 = g * ctx.tau / 4 * qq / f2 ** 1.5
    g_xyz = 4 * ((gf2 * (1 - x / 4)).unsqueeze(-1) * diff).sum(1)
    g_q = -g * ctx.tau * (q / f2.sqrt()).sum(1)
    g_radii = 2 * (gf2 * x * (1 + s / (4 * P)) * radii).sum(1)
    return g_xyz, g_q, g_radii, None


_gb_energy.register_autograd(_backward, setup_context=_setup)


def gb_energy(xyz: Tensor, q: Tensor, radii: Tensor, tau: float) -> Tensor:
    """Generalized Born solvation energy with Still's f_GB.

    Parameters
    ----------
    xyz : (N, 3)
    q : (N,) charges
    radii : (N,) effective Born radii, > 0
    tau : 1/eps_in - 1/eps_out, in energy units
    """
    return torch.ops.bornlib.gb_energy(xyz, q, radii, tau)
