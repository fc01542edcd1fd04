import torch
from torch.autograd.function import once_differentiable


def _gaps(stamps, unit, like):
    """time between events in units, zero before the first"""
    dt = torch.diff(stamps, dim=1, prepend=stamps[:, :1])
    return dt.to(like.dtype) / unit


class IrregularEMA(torch.autograd.Function):
    """Exponentially decaying sum over irregularly spaced events.

    values (B, T, C), stamps (B, T) integer unix times in seconds, rate (C,) decay per unit
    h[t] = exp(-rate * (stamp[t] - stamp[t-1]) / unit) * h[t-1] + values[t]
    """

    @staticmethod
    def forward(ctx, values, stamps, rate, unit=60.0):
        dt = _gaps(stamps, unit, values)
        decay = torch.exp(-rate * dt.unsqueeze(-1))
        h, out = torch.zeros_like(values[:, 0]), []
        for t in range(values.shape[1]):
            h = decay[:, t] * h + values[:, t]
            out.append(h)
        out = torch.stack(out, 1)
        ctx.save_for_backward(stamps, rate, out)
        ctx.unit = unit
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        stamps, rate, out = ctx.saved_tensors
        dt = _gaps(stamps.float(), ctx.unit, out)
        decay = torch.exp(-rate * dt.unsqueeze(-1))
        gv = torch.empty_like(grad)
        grate = torch.zeros_like(rate)
        carry = torch.zeros_like(grad[:, 0])
        for t in range(grad.shape[1] - 1, -1, -1):
            carry = carry + grad[:, t]
            gv[:, t] = carry
            carry = decay[:, t] * carry
            if t:
                grate -= (carry * out[:, t - 1] * dt[:, t, None]).sum(0)
        return gv, None, grate, None
