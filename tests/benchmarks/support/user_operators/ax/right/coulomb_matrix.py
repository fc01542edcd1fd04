import torch
from torch.autograd import Function


class CoulombMatrix(Function):
    """Coulomb matrix of a molecule.

    Parameters
    ----------
    charges : Tensor (n,)
        Nuclear charges, positive; zero for padding is allowed.
    positions : Tensor (n, 3)
        No two atoms at one place.

    Returns
    -------
    Tensor (n, n)
        ``0.5 * Z_i ** 2.4`` on the diagonal, ``Z_i * Z_j / r_ij`` elsewhere.
    """

    @staticmethod
    def forward(ctx, charges, positions):
        ctx.save_for_backward(charges, positions)
        eye = torch.eye(charges.shape[0], dtype=charges.dtype, device=charges.device)
        diff = positions[:, None] - positions[None]
        inv = (diff.pow(2).sum(-1) + eye).rsqrt() * (1 - eye)
        return charges[:, None] * charges * inv + torch.diag(0.5 * charges**2.4)

    @staticmethod
    def backward(ctx, grad):
        charges, positions = ctx.saved_tensors
        eye = torch.eye(charges.shape[0], dtype=charges.dtype, device=charges.device)
        diff = positions[:, None] - positions[None]
        inv = (diff.pow(2).sum(-1) + eye).rsqrt() * (1 - eye)
        both = (grad + grad.T) * inv
        g_charges = both @ charges + 1.2 * charges**1.4 * grad.diagonal()
        k = both * inv**2 * charges[:, None] * charges
        return g_charges, -(k[..., None] * diff).sum(1)
