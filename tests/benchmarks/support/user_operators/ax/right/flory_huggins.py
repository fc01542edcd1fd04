import torch


class FloryHuggins(torch.autograd.Function):
    """Flory-Huggins free energy of mixing per site, in kT.

    Parameters
    ----------
    phi : Tensor (..., n)
        Volume fractions, positive, sum to one over the last axis.
    length : Tensor (n,)
        Degrees of polymerisation, positive.
    chi : Tensor (n, n)
        Interaction parameters, symmetric with zero diagonal.

    Returns
    -------
    Tensor (...)
    """

    @staticmethod
    def forward(ctx, phi, length, chi):
        ctx.save_for_backward(phi, length, chi)
        mixing = (phi * phi.log() / length).sum(-1)
        return mixing + 0.5 * ((phi @ chi) * phi).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        phi, length, chi = ctx.saved_tensors
        g = grad.unsqueeze(-1)
        g_phi = g * ((phi.log() + 1) / length + 0.5 * (phi @ (chi + chi.T)))
        g_length = -(g * phi * phi.log()).reshape(-1, length.shape[0]).sum(0) / length**2
        g_chi = 0.5 * torch.einsum("...i,...j->ij", g * phi, phi)
        return g_phi, g_length, g_chi
