"""Root mean square deviation after optimal superposition (Kabsch, 1976)."""
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class KabschRMSD(Function):
    """RMSD of conformers under the best proper rotation and translation.

    Args:
        P, Q: (..., N, 3) with N >= 3, of one shape
        eps: added under the root

    The structures must not be degenerate (collinear).
    """

    @staticmethod
    def forward(ctx, P, Q, eps=1e-12):
        if P.shape != Q.shape or P.size(-1) != 3:
            raise ValueError("P and Q must both be (..., N, 3)")
        n = P.size(-2)
        Pc = P - P.mean(-2, keepdim=True)
        Qc = Q - Q.mean(-2, keepdim=True)
        U, S, Vh = torch.linalg.svd(Pc.mT @ Qc)
        sign = torch.ones_like(S)
        sign[..., 2] = torch.sign(torch.linalg.det(U) * torch.linalg.det(Vh))
        R = (U * sign.unsqueeze(-2)) @ Vh
        msd = ((Pc @ R - Qc) ** 2).sum((-2, -1)) / n
        rmsd = (msd + eps).sqrt()
        ctx.save_for_backward(Pc, Qc, U, Vh, sign, rmsd)
        return rmsd

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        Pc, Qc, U, Vh, sign, rmsd = ctx.saved_tensors
        R = (U * sign.unsqueeze(-2)) @ Vh
        w = (grad / (rmsd * Pc.size(-2)))[..., None, None]
        gP = w * (Pc - Qc @ R.mT)
        gQ = w * (Qc - Pc @ R)
        return gP, gQ, None


def rmsd(P, Q):
    return KabschRMSD.apply(P, Q)
