import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class RealGainFilter(torch.autograd.Function):
    """irfft(gain * rfft(x)) along the last dim, gain real (n // 2 + 1,)"""

    @staticmethod
    def forward(ctx, x, gain):
        n = x.shape[-1]
        spec = torch.fft.rfft(x)
        ctx.save_for_backward(spec, gain)
        ctx.n = n
        return torch.fft.irfft(spec * gain, n=n)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        spec, gain = ctx.saved_tensors
        n = ctx.n
        gspec = torch.fft.rfft(grad)
        gx = torch.fft.irfft(gspec * gain, n=n)
        # every bin but DC (and Nyquist, for even n) stands for two
        mult = torch.full_like(gain, 2.0)
        mult[0] = 1.0
        mult[-1] = 1.0
        prod = (spec.conj() * gspec).real * mult / n
        return gx, prod.reshape(-1, gain.numel()).sum(0)


class SpectralGain(nn.Module):
    """Learned zero-phase equaliser for frames of n samples"""

    def __init__(self, n, max_gain=2.0):
        super().__init__()
        self.n, self.max_gain = n, max_gain
        self.logit = nn.Parameter(torch.randn(n // 2 + 1))

    def forward(self, x):
        return RealGainFilter.apply(x, self.max_gain * torch.sigmoid(self.logit))
