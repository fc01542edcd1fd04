"""IIR filtering along the last axis."""
import torch
from torch import Tensor


def _iir(x: Tensor, a: Tensor) -> Tensor:
    # y[t] = x[t] - sum_{k>=1} a[k] y[t-k], a normalised by its first entry
    order = a.shape[0] - 1
    ys = []
    for t in range(x.shape[-1]):
        y = x[..., t]
        for k in range(1, min(order, t) + 1):
            y = y - a[k] * ys[t - k]
        ys.append(y)
    return torch.stack(ys, -1)


def _shift(x: Tensor, k: int) -> Tensor:
    return x if k == 0 else torch.nn.functional.pad(x, (k, 0))[..., : x.shape[-1]]


class DifferentiableIIR(torch.autograd.Function):
    @staticmethod
    def forward(ctx, waveform, a_coeffs_normalized):
        output = _iir(waveform, a_coeffs_normalized)
        ctx.save_for_backward(waveform, a_coeffs_normalized, output)
        return output

    @staticmethod
    def backward(ctx, dy):
        x, a, y = ctx.saved_tensors
        dx = da = None
        dx_ = DifferentiableIIR.apply(dy.flip(-1), a).flip(-1)
        if ctx.needs_input_grad[0]:
            dx = dx_
        if ctx.needs_input_grad[1]:
            da = torch.stack([torch.zeros_like(a[0])] + [-(dx_ * _shift(y, k)).sum() for k in range(1, a.shape[0])])
        return dx, da


class DifferentiableFIR(torch.autograd.Function):
    @staticmethod
    def forward(ctx, waveform, b_coeffs):
        ctx.save_for_backward(waveform, b_coeffs)
        return sum(b * _shift(waveform, k) for k, b in enumerate(b_coeffs))

    @staticmethod
    def backward(ctx, dy):
        x, b = ctx.saved_tensors
        dx = db = None
        if ctx.needs_input_grad[0]:
            dx = DifferentiableFIR.apply(dy.flip(-1), b).flip(-1)
        if ctx.needs_input_grad[1]:
            db = torch.stack([(dy * _shift(x, k)).sum() for k in range(b.shape[0])])
        return dx, db


def lfilter(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor, clamp: bool = False) -> Tensor:
    """Perform an IIR filter by evaluating the difference equation.

    Args:
        waveform: ``(..., time)``
        a_coeffs: ``(order + 1,)`` denominator, lowest delay first, first entry not zero
        b_coeffs: ``(order + 1,)`` numerator, lowest delay first
        clamp: clamp the output to ``[-1, 1]``
    """
    if a_coeffs.shape != b_coeffs.shape or a_coeffs.dim() != 1:
        raise ValueError("expected a_coeffs and b_coeffs of one and the same length")
    a0 = a_coeffs[0]
    filtered = DifferentiableFIR.apply(waveform, b_coeffs / a0)
    output = DifferentiableIIR.apply(filtered, a_coeffs / a0)
    return output.clamp(-1.0, 1.0) if clamp else output
