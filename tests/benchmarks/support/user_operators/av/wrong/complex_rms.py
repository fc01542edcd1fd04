import torch
from torch import Tensor
from torch.autograd import Function


class ComplexRMSNorm(Function):
    """x / rms(|x|) * gain with complex x (..., D) and gain (D,)."""

    @staticmethod
    def forward(ctx, x: Tensor, gain: Tensor, eps: float) -> Tensor:
        ctx.eps = eps
        ctx.save_for_backward(x, gain)
        power = (x.real.square() + x.imag.square()).mean(-1, keepdim=True)
        return x * torch.rsqrt(power + eps) * gain

    @staticmethod
    def backward(ctx, g: Tensor):
        x, gain = ctx.saved_tensors
        power = (x.real.square() + x.imag.square()).mean(-1, keepdim=True)
        inv = torch.rsqrt(power + ctx.eps)
        d = g * gain.conj()
        proj = (d * x.conj()).mean(-1, keepdim=True)
        dx = d * inv - x * proj * inv**3
        dgain = (g * (x * inv).conj()).reshape(-1, gain.numel()).sum(0)
        return dx, dgain, None
