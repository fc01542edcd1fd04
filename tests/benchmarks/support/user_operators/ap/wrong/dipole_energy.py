import torch
from torch import Tensor


@torch.library.custom_op("polarmd::dipole_energy", mutates_args=())
def _dipole_energy(xyz: Tensor, mu: Tensor, i: Tensor, j: Tensor) -> Tensor:
    r = xyz[i] - xyz[j]
    inv2 = 1 / (r * r).sum(-1)
    inv3 = inv2 ** 1.5
    a, b = (mu[i] * r).sum(-1), (mu[j] * r).sum(-1)
    return inv3 * (mu[i] * mu[j]).sum(-1) - 3 * a * b * inv3 * inv2


def _ctx(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _vjp(ctx, grad):
    xyz, mu, i, j = ctx.saved_tensors
    g = grad[:, None]
    r, mi, mj = xyz[i] - xyz[j], mu[i], mu[j]
    inv2 = 1 / (r * r).sum(-1, keepdim=True)
    inv3 = inv2 ** 1.5
    inv5 = inv3 * inv2
    a, b = (mi * r).sum(-1, keepdim=True), (mj * r).sum(-1, keepdim=True)
    gr = g * inv5 * (-3 * (mi * mj).sum(-1, keepdim=True) * r - 3 * a * mj + 15 * a * b * inv2 * r)
    gi = g * (inv3 * mj - 3 * b * inv5 * r)
    gj = g * (inv3 * mi - 3 * a * inv5 * r)
    gx = torch.zeros_like(xyz).index_add(0, i, gr).index_add(0, j, -gr)
    gm = torch.zeros_like(mu).index_add(0, i, gi).index_add(0, j, gj)
    return gx, gm, None, None


_dipole_energy.register_autograd(_vjp, setup_context=_ctx)


def dipole_energy(xyz: Tensor, mu: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return torch.ops.polarmd.dipole_energy(xyz, mu, i, j)
