import torch
import torch.nn.functional as F
from torch import Tensor, nn


@torch.library.custom_op("aalib::blur_pool1d", mutates_args=())
def blurpool1d(x: Tensor, taps: Tensor, stride: int) -> Tensor:
    """Depthwise low-pass with reflection padding, then subsampling. x (B, C, T), taps (k,) odd."""
    p = taps.shape[0] // 2
    C = x.shape[1]
    w = taps.expand(C, 1, -1).contiguous()
    return F.conv1d(F.pad(x, (p, p), mode="reflect"), w, stride=stride, groups=C)


def _ctx(ctx, inputs, output):
    x, taps, stride = inputs
    ctx.save_for_backward(taps)
    ctx.T, ctx.stride = x.shape[-1], stride


def _grad(ctx, g):
    (taps,) = ctx.saved_tensors
    T, p, C = ctx.T, taps.shape[0] // 2, g.shape[1]
    w = taps.expand(C, 1, -1)
    full = F.conv_transpose1d(g, w, stride=ctx.stride, groups=C)
    full = F.pad(full, (0, T + 2 * p - full.shape[-1]))
    left = full[..., :p].flip(-1)
    right = full[..., T + p :].flip(-1)
    body = full[..., p : T + p]
    body = body + F.pad(left, (1, T - 1 - p))
    body = body + F.pad(right, (T - p, 0))
    return body, None, None


blurpool1d.register_autograd(_grad, setup_context=_ctx)


class BlurPool1d(nn.Module):
    def __init__(self, filt_size: int = 3, stride: int = 2):
        super().__init__()
        row = torch.tensor([1.0])
        for _ in range(filt_size - 1):
            row = F.pad(row, (0, 1)) + F.pad(row, (1, 0))
        self.stride = stride
        self.register_buffer("taps", row / row.sum())

    def forward(self, x: Tensor) -> Tensor:
        return blurpool1d(x, self.taps, self.stride)
