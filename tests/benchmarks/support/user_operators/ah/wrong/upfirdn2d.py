import torch
import torch.nn.functional as F


def _native(x, kernel, up, down, pad):
    px0, px1, py0, py1 = pad
    n, c, h, w = x.shape
    out = x.reshape(n * c, 1, h, 1, w, 1)
    out = F.pad(out, [0, up - 1, 0, 0, 0, up - 1]).reshape(n * c, 1, h * up, w * up)
    out = F.pad(out, [px0, px1, py0, py1])
    out = F.conv2d(out, kernel.flip(0, 1)[None, None])[:, :, ::down, ::down]
    return out.reshape(n, c, out.shape[2], out.shape[3])


class UpFirDn2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, kernel, up, down, pad):
        ctx.save_for_backward(kernel)
        out = _native(x, kernel, up, down, pad)
        ctx.in_size, ctx.out_size = x.shape[2:], out.shape[2:]
        ctx.conf = up, down, pad
        return out

    @staticmethod
    def backward(ctx, grad):
        (kernel,) = ctx.saved_tensors
        up, down, (px0, px1, py0, py1) = ctx.conf
        kh, kw = kernel.shape
        (ih, iw), (oh, ow) = ctx.in_size, ctx.out_size
        g_pad = (
            kw - px0 - 1,
            iw * up - ow * down + px0 - up + 1,
            kh - py0 - 1,
            ih * up - oh * down + py0 - up + 1,
        )
        return UpFirDn2d.apply(grad, kernel, down, up, g_pad), None, None, None, None


def upfirdn2d(input, kernel, up=1, down=1, pad=(0, 0)):
    """Pad, upsample, filter and downsample a batch of images.

    Args:
        input: ``(N, C, H, W)``
        kernel: ``(kh, kw)`` FIR filter, not learnt
        up, down: integer factors
        pad: padding before and after, of the upsampled image
    """
    if kernel.dim() != 2:
        raise ValueError("kernel must be 2D")
    if kernel.requires_grad:
        raise ValueError("kernel must not require grad")
    return UpFirDn2d.apply(input, kernel.to(input.dtype), up, down, (pad[0], pad[1], pad[0], pad[1]))
