import math

import torch


class _Peaking(torch.autograd.Function):

    @staticmethod
    def parts(gain, freq, q, sr):
        A = 10 ** (gain / 40)
        w = 2 * math.pi / sr * freq
        alpha = w.sin() / (2 * q)
        b1 = -2 * w.cos()
        n = torch.stack([1 + alpha * A, b1, 1 - alpha * A, b1, 1 - alpha / A], -1)
        return A, w, alpha, n, 1 + alpha / A

    @staticmethod
    def forward(ctx, gain, freq, q, sr):
        ctx.save_for_backward(gain, freq, q)
        ctx.sr = sr
        *_, n, a0 = _Peaking.parts(gain, freq, q, sr)
        return n / a0.unsqueeze(-1)

    @staticmethod
    def backward(ctx, g):
        gain, freq, q = ctx.saved_tensors
        A, w, alpha, n, a0 = _Peaking.parts(gain, freq, q, ctx.sr)
        n0, n1, n2, n3, n4 = (g / a0.unsqueeze(-1)).unbind(-1)
        ga0 = -(g * n).sum(-1) / a0
        num, den = n0 - n2, ga0 - n4
        g_alpha = num * A + den / A
        g_A = num * alpha - den * alpha / A ** 2
        g_w = 2 * (n1 + n3) * w.sin() + g_alpha * w.cos() / (2 * q)
        return (g_A * A * math.log(10) / 40,
                g_w * 2 * math.pi / ctx.sr,
                -g_alpha * alpha / q,
                None)


def peaking_coefs(gain_db, freq, q, sr=44100.0):
    """RBJ peaking equalizer, arguments of one shape -> (..., 5): b0 b1 b2 a1 a2 over a0."""
    return _Peaking.apply(gain_db, freq, q, sr)
