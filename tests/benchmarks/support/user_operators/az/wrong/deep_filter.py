import torch
from torch.autograd import Function
from torch.nn.functional import pad


class DeepFilter(Function):
    """Multi-frame complex filter of a spectrogram.

    spec: complex (B, T, F); coefs: complex (B, N, T, F); lookahead: number of the N taps that look ahead.
    Tap n of frame t is applied to frame t + lookahead - n; frames outside are zero. Returns (B, T, F).
    """

    @staticmethod
    def forward(ctx, spec, coefs, lookahead=0):
        taps = coefs.size(1)
        if not 0 <= lookahead < taps:
            raise ValueError(f"lookahead {lookahead} needs more than {taps} taps")
        frames = spec.size(1)
        padded = pad(spec, (0, 0, taps - 1 - lookahead, lookahead))
        ctx.save_for_backward(spec, coefs)
        ctx.lookahead = lookahead
        return sum(coefs[:, n] * padded[:, taps - 1 - n : taps - 1 - n + frames] for n in range(taps))

    @staticmethod
    def backward(ctx, grad):
        spec, coefs = ctx.saved_tensors
        taps, frames, lookahead = coefs.size(1), spec.size(1), ctx.lookahead
        padded = pad(spec, (0, 0, taps - 1 - lookahead, lookahead))
        grad_spec = grad_coefs = None
        if ctx.needs_input_grad[0]:
            grad_padded = 0
            for n in range(taps):
                grad_padded = grad_padded + pad(grad * coefs[:, n], (0, 0, taps - 1 - n, n))
            start = taps - 1 - lookahead
            grad_spec = grad_padded[:, start : start + frames]
        if ctx.needs_input_grad[1]:
            windows = [padded[:, taps - 1 - n : taps - 1 - n + frames] for n in range(taps)]
            grad_coefs = grad[:, None] * torch.stack(windows, 1).conj()
        return grad_spec, grad_coefs, None
