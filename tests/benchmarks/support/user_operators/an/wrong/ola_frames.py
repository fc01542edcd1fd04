import torch
from torch.autograd.function import once_differentiable


def _frames(x, size, hop):
    # x (B, L) dense -> (B, n, size) view
    n = 1 + (x.shape[1] - size) // hop
    return x.as_strided((x.shape[0], n, size), (x.shape[1], hop, 1))


class WindowedFrames(torch.autograd.Function):
    """(B, L), window (size,) -> (B, n_frames, size); the tail that fills no frame is dropped."""

    @staticmethod
    def forward(ctx, sig, window, hop):
        ctx.save_for_backward(sig, window)
        ctx.hop = hop
        return _frames(sig.contiguous(), window.numel(), hop) * window

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        sig, window = ctx.saved_tensors
        size, hop = window.numel(), ctx.hop
        gsig = gwin = None
        if ctx.needs_input_grad[0]:
            gsig = g.new_zeros(sig.shape)
            for k in range(g.shape[1]):
                gsig[:, k * hop:k * hop + size] += g[:, k] * window
        if ctx.needs_input_grad[1]:
            gwin = (g * _frames(sig, size, hop)).sum((0, 1))
        return gsig, gwin, None
