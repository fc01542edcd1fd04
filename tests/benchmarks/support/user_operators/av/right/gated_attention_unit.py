import torch
from torch import Tensor
from torch.autograd import Function


class GatedAttentionUnit(Function):
    """FLASH's GAU core: u * (relu(q k^T / N)^2 v), q and k cheap affine maps of one base z.

    u, v (B, N, E), z (B, N, S), gamma, beta (2, S)
    """

    @staticmethod
    def forward(ctx, u: Tensor, v: Tensor, z: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        ctx.save_for_backward(u, v, z, gamma, beta)
        q, k = z * gamma[0] + beta[0], z * gamma[1] + beta[1]
        a = torch.relu(q @ k.mT / z.size(1)).square()
        return u * (a @ v)

    @staticmethod
    def backward(ctx, g: Tensor):
        u, v, z, gamma, beta = ctx.saved_tensors
        n = z.size(1)
        q, k = z * gamma[0] + beta[0], z * gamma[1] + beta[1]
        r = torch.relu(q @ k.mT / n)
        a = r.square()
        du = g * (a @ v)
        dav = g * u
        dv = a.mT @ dav
        ds = 2 * r * (dav @ v.mT) / n
        dq, dk = ds @ k, ds.mT @ q
        dz = dq * gamma[0]
        dz = dz + dk * gamma[1]
        dgamma = torch.stack([(dq * z).sum((0, 1)), (dk * z).sum((0, 1))])
        dbeta = torch.stack([dq.sum((0, 1)), dk.sum((0, 1))])
        return du, dv, dz, dgamma, dbeta
