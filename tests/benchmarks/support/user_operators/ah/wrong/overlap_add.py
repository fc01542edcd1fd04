import torch
import torch.nn.functional as F
from torch import Tensor


def _envelope(window: Tensor, frames: int, hop: int) -> Tensor:
    n = window.shape[0]
    env = window.new_zeros((frames - 1) * hop + n)
    for i in range(frames):
        env[i * hop : i * hop + n] += window
    return env.clamp(min=1e-11)


def _trim(n: int, center: bool) -> int:
    return n // 2 if center else 0


@torch.library.custom_op("ah_ola_v2::overlap_add", mutates_args=())
def _overlap_add(frames: Tensor, window: Tensor, hop: int, center: bool, normalize: bool) -> Tensor:
    b, t, n = frames.shape
    out = frames.new_zeros(b, (t - 1) * hop + n)
    for i in range(t):
        out[:, i * hop : i * hop + n] += frames[:, i] * window
    if normalize:
        out /= _envelope(window, t, hop)
    cut = _trim(n, center)
    return out[:, cut : out.shape[1] - cut].clone()


@_overlap_add.register_fake
def _(frames, window, hop, center, normalize):
    b, t, n = frames.shape
    return frames.new_empty(b, (t - 1) * hop + n - 2 * _trim(n, center))


def _setup_context(ctx, inputs, output):
    frames, window, ctx.hop, ctx.center, ctx.normalize = inputs
    ctx.frames_shape = frames.shape
    ctx.save_for_backward(window)


def _backward(ctx, grad):
    (window,) = ctx.saved_tensors
    b, t, n = ctx.frames_shape
    cut = _trim(n, ctx.center)
    grad = F.pad(grad, (cut, cut))
    if ctx.normalize and not ctx.center:
        grad = grad / _envelope(window, t, ctx.hop)
    return grad.unfold(1, n, ctx.hop) * window, None, None, None, None


_overlap_add.register_autograd(_backward, setup_context=_setup_context)


def overlap_add(frames: Tensor, window: Tensor, hop_length: int, center: bool = False, normalize: bool = True) -> Tensor:
    """Put windowed frames together to a signal.

    Args:
        frames: ``(batch, frame, n_fft)``
        window: ``(n_fft,)``, not negative; a constant
        hop_length: step between frames, at most ``n_fft``
        center: cut ``n_fft // 2`` samples off both ends
        normalize: divide by the sum of the windows

    Returns:
        ``(batch, time)``
    """
    if frames.dim() != 3 or window.shape != frames.shape[-1:]:
        raise ValueError("frames must be (batch, frame, n_fft) with a window of n_fft samples")
    if not 0 < hop_length <= frames.shape[-1]:
        raise ValueError("hop_length must be positive and not larger than n_fft")
    if window.requires_grad:
        raise ValueError("window is a constant")
    return _overlap_add(frames, window, hop_length, center, normalize)
