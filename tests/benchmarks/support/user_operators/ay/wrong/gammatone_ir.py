import math

import torch

TWO_PI = 2 * math.pi


class _Gammatone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fc, bw, taps, order, sr, normalize):
        t = torch.arange(taps, dtype=fc.dtype, device=fc.device) / sr
        env = t ** (order - 1) * torch.exp(-TWO_PI * bw[:, None] * t)
        if normalize:
            env = env * (TWO_PI * bw[:, None]) ** order / math.factorial(order - 1)
        ctx.save_for_backward(fc, bw)
        ctx.conf = taps, order, sr, normalize
        return env * torch.cos(TWO_PI * fc[:, None] * t)

    @staticmethod
    def backward(ctx, g):
        fc, bw = ctx.saved_tensors
        taps, order, sr, normalize = ctx.conf
        t = torch.arange(taps, dtype=fc.dtype, device=fc.device) / sr
        env = t ** (order - 1) * torch.exp(-TWO_PI * bw[:, None] * t)
        if normalize:
            env = env * (TWO_PI * bw[:, None]) ** order / math.factorial(order - 1)
        arg = TWO_PI * fc[:, None] * t
        gf = -(g * env * torch.sin(arg) * TWO_PI * t).sum(1)
        gh = g * env * torch.cos(arg)
        gb = -(gh * TWO_PI * t).sum(1)
        return gf, gb, None, None, None, None


def gammatone_ir(fc, bw, taps, order=4, sr=16000, normalize=False):
    """Gammatone impulse responses, (C,), (C,) in Hz -> (C, taps)."""
    return _Gammatone.apply(fc, bw, taps, order, sr, normalize)
