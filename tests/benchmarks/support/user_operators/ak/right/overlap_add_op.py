import torch
from torch import Tensor


@torch.library.custom_op("stftkit::overlap_add", mutates_args=())
def overlap_add(frames: Tensor, window: Tensor, hop: int) -> Tensor:
    """Windowed frames (B, N, L), window (L,) -> signal (B, (N - 1) * hop + L)."""
    b, n, length = frames.shape
    out = frames.new_zeros(b, (n - 1) * hop + length)
    for i in range(n):
        out[:, i * hop:i * hop + length] += frames[:, i] * window
    return out


def _keep(ctx, inputs, output):
    frames, window, ctx.hop = inputs
    ctx.save_for_backward(frames, window)


def _grad(ctx, g):
    frames, window = ctx.saved_tensors
    parts = g.unfold(-1, window.numel(), ctx.hop)
    return parts * window, (parts * frames).sum((0, 1)), None


overlap_add.register_autograd(_grad, setup_context=_keep)
