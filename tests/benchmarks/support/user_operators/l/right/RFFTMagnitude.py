"""Magnitude spectrum of real signals with a closed-form adjoint."""
import torch
from torch import Tensor
from torch.autograd import Function


def _smooth_abs(X: Tensor, eps: float) -> Tensor:
    return torch.sqrt(X.real ** 2 + X.imag ** 2 + eps)


class RFFTMagnitude(Function):
    """sqrt(|rfft(x)|^2 + eps) over the last axis.

    Shapes:
        x: real (..., N), any N >= 1
        out: real (..., N // 2 + 1)
    """

    @staticmethod
    def forward(ctx, x: Tensor, eps: float = 1e-8) -> Tensor:
        ctx.save_for_backward(x)
        ctx.eps = eps
        return _smooth_abs(torch.fft.rfft(x), eps)

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, = ctx.saved_tensors
        n = x.shape[-1]
        X = torch.fft.rfft(x)
        gX = grad * X / _smooth_abs(X, ctx.eps)
        # irfft counts every bin twice that has a mirror image (not DC, not Nyquist)
        share = torch.ones(X.shape[-1], dtype=x.dtype, device=x.device)
        mirrored = slice(1, -1) if n % 2 == 0 else slice(1, None)
        share[mirrored] = 0.5
        return n * torch.fft.irfft(gX * share, n=n), None


def log_spectral_distance(a: Tensor, b: Tensor) -> Tensor:
    la = RFFTMagnitude.apply(a, 1e-6).log()
    lb = RFFTMagnitude.apply(b, 1e-6).log()
    return (la - lb).pow(2).mean(-1).sqrt().mean()
