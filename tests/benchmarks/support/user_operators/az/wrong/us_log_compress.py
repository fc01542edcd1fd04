import math

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_DB = 20 / math.log(10)


class _LogCompress(torch.autograd.Function):
    @staticmethod
    def forward(ctx, envelope, dynamic_range):
        peak, where = envelope.max(dim=1, keepdim=True)
        level = _DB * (envelope.clamp(min=0) / peak).log() + dynamic_range
        ctx.save_for_backward(envelope, peak, where)
        ctx.dynamic_range = dynamic_range
        return level.clamp(min=0) / dynamic_range

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        envelope, peak, where = ctx.saved_tensors
        shown = _DB * (envelope.clamp(min=0) / peak).log() + ctx.dynamic_range > 0
        g_log = torch.where(shown, grad * _DB / ctx.dynamic_range, 0.0)
        g_envelope = torch.where(shown, g_log / envelope, 0.0)
        return g_envelope.scatter(1, where, -g_log.sum(1, keepdim=True) / peak), None


def us_log_compress(envelope: Tensor, dynamic_range: float = 60.0) -> Tensor:
    """Log compression of ultrasound lines: 0 dB at each line's maximum, cut at -dynamic_range.

    envelope: (lines, samples), not negative, with one positive sample at least in each line.
    Returns values in [0, 1].
    """
    if dynamic_range <= 0:
        raise ValueError("dynamic_range must be positive")
    return _LogCompress.apply(envelope, dynamic_range)
