"""Learnable carrier-frequency-offset correction."""
import torch
import torch.nn as nn
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, omega, phase, rotor, ramp):
        ctx.save_for_backward(x, rotor, ramp)
        return x * rotor

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, rotor, ramp = ctx.saved_tensors
        # d/dphase of x e^{i (omega n + phase)}
        tangent = (g.conj() * 1j * x * rotor).real
        return g * rotor.conj(), (tangent * ramp).sum(), tangent.sum(), None, None


class FrequencyShift(nn.Module):
    """y[n] = x[n] exp(i (omega n + phase)), with omega and phase learned.

    Args:
        omega: initial frequency, radians per sample
        phase: initial phase, radians

    Shape:
        x: complex (..., N)
    """

    def __init__(self, omega: float = 0.0, phase: float = 0.0) -> None:
        super().__init__()
        self.omega = nn.Parameter(torch.tensor(omega))
        self.phase = nn.Parameter(torch.tensor(phase))
        self._ramp = None

    def _rotor(self, n: int, dtype: torch.dtype) -> Tensor:
        if self._ramp is None or self._ramp.numel() != n or self._ramp.dtype != dtype:
            self._ramp = torch.arange(n, dtype=dtype, device=self.omega.device)
        angle = (self.omega * self._ramp + self.phase).detach()
        self._rot = torch.polar(torch.ones_like(angle), angle)
        return self._rot

    def forward(self, x: Tensor) -> Tensor:
        if not x.is_complex():
            raise TypeError("x must be complex")
        rotor = self._rotor(x.shape[-1], x.real.dtype)
        return _Rotate.apply(x, self.omega, self.phase, rotor, self._ramp)
