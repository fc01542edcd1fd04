import torch
from torch.autograd.function import once_differentiable


def _ola(frames, hop):
    B, F, L = frames.shape
    out = frames.new_zeros(B, (F - 1) * hop + L)
    for f in range(F):
        out[:, f * hop : f * hop + L] += frames[:, f]
    return out


class OverlapAdd(torch.autograd.Function):
    """Windowed synthesis: frames (B, F, L), window (L,) -> signal (B, (F - 1) * hop + L)

    normalize divides by the summed squared window, as istft does.
    """

    @staticmethod
    def forward(ctx, frames, window, hop, normalize=True):
        B, F, L = frames.shape
        signal = _ola(frames * window, hop)
        norm = torch.ones_like(signal[:1])
        if normalize:
            norm = _ola((window * window).expand(1, F, L), hop)
        signal = signal / norm
        ctx.save_for_backward(frames, window, signal, norm)
        ctx.hop, ctx.normalize = hop, normalize
        return signal

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        frames, window, signal, norm = ctx.saved_tensors
        B, F, L = frames.shape
        g = (grad / norm).contiguous()
        gf = g.as_strided((B, F, L), (g.shape[1], ctx.hop, 1))
        gw = (gf * frames).sum((0, 1))
        if ctx.normalize:
            gn = -(g * signal).sum(0)
            gw = gw + 2 * window * gn.unfold(0, L, ctx.hop).sum(0)
        return gf * window, gw, None, None
