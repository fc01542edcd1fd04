import torch
from torch.autograd import Function


class _FrameEnergy(Function):
    @staticmethod
    def forward(ctx, x, window, hop):
        frames = x.unfold(-1, window.numel(), hop)
        ctx.hop = hop
        ctx.save_for_backward(x, window)
        return (frames * window).pow(2).sum(-1)

    @staticmethod
    def backward(ctx, g):
        x, window = ctx.saved_tensors
        win, hop = window.numel(), ctx.hop
        frames = x.unfold(-1, win, hop)
        gx = gw = None
        if ctx.needs_input_grad[0]:
            d = 2 * g.unsqueeze(-1) * frames * window ** 2
            gx = torch.zeros_like(x)
            for i in range(frames.size(-2)):
                gx[..., i * (win // 2):i * (win // 2) + win] += d[..., i, :]
        if ctx.needs_input_grad[1]:
            gw = (2 * g.unsqueeze(-1) * frames ** 2 * window).flatten(0, -2).sum(0)
        return gx, gw, None


def frame_energy(x, window, hop=None):
    """Energy of windowed frames.

    x: (..., samples), at least as long as the window
    window: (win,)
    hop: step between frames, half of the window by default
    """
    if hop is None:
        hop = max(1, window.numel() // 2)
    assert hop >= 1 and x.size(-1) >= window.numel()
    return _FrameEnergy.apply(x, window, hop)
