import torch


class GPEnergy(torch.autograd.Function):
    """Energy functional of a 1-D condensate on a ring (lattice spacing 1).

    E = sum_i 1/2 |psi_{i+1} - psi_i|^2 + V_i |psi_i|^2 + g/2 |psi_i|^4

    psi complex (..., n); V real (n,); g float (not differentiated).
    """

    @staticmethod
    def forward(ctx, psi, V, g):
        ctx.save_for_backward(psi, V)
        ctx.g = g
        rho = psi.real ** 2 + psi.imag ** 2
        hop = psi.roll(-1, -1) - psi
        return (0.5 * (hop.real ** 2 + hop.imag ** 2) + V * rho + 0.5 * g * rho ** 2).sum(-1)

    @staticmethod
    def backward(ctx, grad_E):
        psi, V = ctx.saved_tensors
        rho = psi.real ** 2 + psi.imag ** 2
        lap = psi.roll(1, -1) + psi.roll(-1, -1) - 2 * psi
        gE = grad_E.unsqueeze(-1)
        grad_psi = gE * (-lap + 2 * V * psi + 2 * ctx.g * rho * psi)
        grad_V = (gE * rho).reshape(-1, V.shape[0]).sum(0)
        return grad_psi, grad_V, None
