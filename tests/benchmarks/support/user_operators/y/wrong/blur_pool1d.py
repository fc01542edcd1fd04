import torch
import torch.nn.functional as F


class BlurPool1d(torch.autograd.Function):
    """[1 2 1]/4 (or another odd filter) and stride, reflect padded: x (B, C, L)"""

    @staticmethod
    def forward(ctx, x, stride=2, taps=(1.0, 2.0, 1.0)):
        C = x.shape[1]
        f = x.new_tensor(taps)
        f = f / f.sum()
        pad = len(taps) // 2
        ctx.length, ctx.stride, ctx.pad = x.shape[-1], stride, pad
        ctx.save_for_backward(f)
        return F.conv1d(F.pad(x, (pad, pad), mode="reflect"), f.expand(C, 1, -1), stride=stride, groups=C)

    @staticmethod
    def backward(ctx, g):
        f, = ctx.saved_tensors
        C, L, pad = g.shape[1], ctx.length, ctx.pad
        full = F.conv_transpose1d(g, f.expand(C, 1, -1), stride=ctx.stride, groups=C)
        full = F.pad(full, (0, L + 2 * pad - full.shape[-1]))
        gx = full[..., pad:pad + L].clone()
        if pad:
            gx[..., 1:pad + 1] += full[..., :pad].flip(-1)
            gx[..., L - pad:L] += full[..., pad + L:].flip(-1)
        return gx, None, None
