import torch
from torch import Tensor


@torch.library.custom_op("aalib::overlap_add", mutates_args=())
def _overlap_add(frames: Tensor, window: Tensor, hop: int, normalize: bool) -> Tensor:
    B, N, L = frames.shape
    out = frames.new_zeros(B, (N - 1) * hop + L)
    for n in range(N):
        out[:, n * hop : n * hop + L] += frames[:, n] * window
    if normalize:
        out /= _envelope(window, N, hop)
    return out


def _envelope(window, N, hop):
    L = window.shape[0]
    env = window.new_zeros((N - 1) * hop + L)
    for n in range(N):
        env[n * hop : n * hop + L] += window ** 2
    return env.clamp(min=1e-8)


def _setup(ctx, inputs, output):
    frames, window, hop, normalize = inputs
    ctx.save_for_backward(window)
    ctx.shape, ctx.hop, ctx.normalize = frames.shape, hop, normalize


def _backward(ctx, grad):
    (window,) = ctx.saved_tensors
    B, N, L = ctx.shape
    if ctx.normalize and ctx.hop * 2 == L:
        grad = grad / _envelope(window, N, ctx.hop)
    return grad.unfold(-1, L, ctx.hop) * window, None, None, None


_overlap_add.register_autograd(_backward, setup_context=_setup)


def overlap_add(frames: Tensor, window: Tensor, hop: int, normalize: bool = False) -> Tensor:
    """Reassemble windowed frames (B, N, L) into a signal (B, (N-1)*hop + L).

    The window (L,) is a constant. With ``normalize`` the signal is divided by the sum of the
    squared, shifted windows.
    """
    if hop < 1 or hop > frames.shape[-1]:
        raise ValueError("hop must lie in 1..L")
    return _overlap_add(frames, window, hop, normalize)
