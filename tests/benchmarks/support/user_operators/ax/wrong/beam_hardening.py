import torch
from torch.autograd import Function


class PolychromaticProjection(Function):
    """Negative log transmission of a polychromatic beam.

    Parameters
    ----------
    lengths : (..., M)
        Path length in every material, not negative.
    attenuation : (E, M)
        Attenuation coefficient of every material at every energy.
    spectrum : (E,)
        Detected spectrum, not negative, normalised to one.

    Returns
    -------
    (...)
    """

    @staticmethod
    def forward(ctx, lengths, attenuation, spectrum):
        ctx.save_for_backward(lengths, attenuation, spectrum)
        passed = torch.exp(-(lengths @ attenuation.T))
        return -torch.log(passed @ spectrum)

    @staticmethod
    def backward(ctx, grad):
        lengths, attenuation, spectrum = ctx.saved_tensors
        energies, materials = attenuation.shape
        flat = lengths.view(-1, materials)
        passed = torch.exp(-(flat @ attenuation.T))
        share = grad.reshape(-1, 1) * passed / (passed @ spectrum)[:, None]
        weighted = share * spectrum
        g_lengths = (weighted @ attenuation).reshape(lengths.shape)
        return g_lengths, weighted.T @ flat, -share.sum(0)
