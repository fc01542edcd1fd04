import torch


class ChromaFold(torch.autograd.Function):
    """Chroma from a magnitude spectrogram.

    mag (B, F, T), pitch_class (F,) long in 0..11, or -1 for bins that are left out -> (B, 12, T) of unit length
    """

    @staticmethod
    def _fold(mag, pitch_class):
        keep = pitch_class >= 0
        energy = mag.new_zeros(mag.size(0), 12, mag.size(2)).index_add(1, pitch_class[keep], mag[:, keep] ** 2)
        return keep, energy

    @staticmethod
    def forward(ctx, mag, pitch_class, eps):
        ctx.save_for_backward(mag, pitch_class)
        ctx.eps = eps
        _, energy = ChromaFold._fold(mag, pitch_class)
        return energy / torch.sqrt((energy**2).sum(1, keepdim=True) + eps)

    @staticmethod
    def backward(ctx, g):
        mag, pitch_class = ctx.saved_tensors
        keep, energy = ChromaFold._fold(mag, pitch_class)
        size = torch.sqrt((energy**2).sum(1, keepdim=True) + ctx.eps)
        g_energy = g / size - energy * (g * energy).sum(1, keepdim=True) / size**3
        g_mag = 2 * mag * g_energy[:, pitch_class.clamp(min=0)] * keep[:, None]
        return g_mag, None, None
