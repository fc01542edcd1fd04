import torch
from torch.autograd import Function


class FermiOccupation(Function):
    """Fermi-Dirac occupations with the chemical potential fixed by the number of electrons.

    energies : (B, n)  single-particle levels
    n_el     : (B,)    number of electrons, 0 < n_el < n
    kT       : float   smearing, same unit as the energies
    returns occupations (B, n) with occ.sum(1) == n_el
    """

    @staticmethod
    def forward(ctx, energies, n_el, kT):
        lo = energies.amin(1) - 40 * kT
        hi = energies.amax(1) + 40 * kT
        for _ in range(90):
            mid = 0.5 * (lo + hi)
            count = torch.sigmoid((mid[:, None] - energies) / kT).sum(1)
            low = count < n_el
            lo = torch.where(low, mid, lo)
            hi = torch.where(low, hi, mid)
        mu = 0.5 * (lo + hi)
        occ = torch.sigmoid((mu[:, None] - energies) / kT)
        ctx.save_for_backward(occ)
        ctx.kT = kT
        return occ

    @staticmethod
    def backward(ctx, grad_occ):
        occ, = ctx.saved_tensors
        w = occ * (1 - occ) / ctx.kT
        # d mu = (sum_j w_j d e_j + d N) / sum_j w_j
        grad_mu = (grad_occ * w).sum(1, keepdim=True) / w.sum(1, keepdim=True)
        grad_e = w * (grad_mu - grad_occ)
        return grad_e, grad_mu.squeeze(1), None
