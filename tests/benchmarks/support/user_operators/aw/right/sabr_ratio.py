import torch


def _chi(z, rho, q):
    return torch.log((q + z - rho) / (1 - rho))


class SabrRatio(torch.autograd.Function):
    """z / chi(z) of Hagan's formula, 1 at the money (z = 0).

    z any shape, rho broadcastable to it, |rho| < 1.
    """

    @staticmethod
    def forward(ctx, z, rho):
        ctx.save_for_backward(z, rho)
        small = z.abs() < 1e-3
        zs = torch.where(small, torch.ones_like(z), z)
        q = torch.sqrt(1 - 2 * rho * zs + zs ** 2)
        series = 1 - rho * z / 2 + (2 - 3 * rho ** 2) * z ** 2 / 12
        return torch.where(small, series, zs / _chi(zs, rho, q))

    @staticmethod
    def backward(ctx, grad):
        z, rho = ctx.saved_tensors
        small = z.abs() < 1e-3
        zs = torch.where(small, torch.ones_like(z), z)
        q = torch.sqrt(1 - 2 * rho * zs + zs ** 2)
        chi = _chi(zs, rho, q)
        f = zs / chi
        f_z = (1 - f / q) / chi
        chi_rho = 1 / (1 - rho) - (zs / q + 1) / (q + zs - rho)
        f_rho = -f * chi_rho / chi
        f_z = torch.where(small, -rho / 2 + (2 - 3 * rho ** 2) * z / 6, f_z)
        f_rho = torch.where(small, -z / 2 - rho * z ** 2 / 2, f_rho)
        return (grad * f_z).sum_to_size(z.shape), (grad * f_rho).sum_to_size(rho.shape)
