import math
import torch


class FLIMPhasor(torch.autograd.Function):
    @staticmethod
    def forward(ctx, decay, harmonic=1, min_counts=1e-3):
        """Phasor coordinates of fluorescence decays.

        Args:
            decay: (..., T) photon histogram over one laser period
            harmonic: multiple of the laser frequency
            min_counts: pixels with no more photons than this are put at (0, 0)
        Returns:
            (..., 2), g and s
        """
        ctx.save_for_backward(decay)
        ctx.harmonic, ctx.min_counts = harmonic, min_counts
        T = decay.shape[-1]
        w = 2 * math.pi * harmonic * (torch.arange(T, dtype=decay.dtype, device=decay.device) + 0.5) / T
        basis = torch.stack([w.cos(), w.sin()], -1)
        n = decay.sum(-1, keepdim=True)
        lit = n > min_counts
        n = torch.where(lit, n, torch.ones_like(n))
        return decay @ basis / n * lit

    @staticmethod
    def backward(ctx, g):
        decay, = ctx.saved_tensors
        T = decay.shape[-1]
        w = 2 * math.pi * ctx.harmonic * (torch.arange(T, dtype=decay.dtype, device=decay.device) + 0.5) / T
        basis = torch.stack([w.cos(), w.sin()], -1)
        n = decay.sum(-1, keepdim=True)
        lit = n > ctx.min_counts
        n = torch.where(lit, n, torch.ones_like(n))
        ph = decay @ basis / n * lit
        gd = (g @ basis.T - (g * ph).sum(-1, keepdim=True)) / n
        return gd * lit, None, None
