import torch
import torch.nn.functional as F


class DepthwiseConv2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, stride=1, pad=0):
        ctx.save_for_backward(x, w)
        ctx.stride, ctx.pad = stride, pad
        xp = F.pad(x, (pad,) * 4)
        kh, kw = w.shape[-2:]
        oh = (xp.shape[-2] - kh) // stride + 1
        ow = (xp.shape[-1] - kw) // stride + 1
        out = x.new_zeros(x.shape[0], x.shape[1], oh, ow)
        for i in range(kh):
            for j in range(kw):
                out += w[:, i, j, None, None] * xp[..., i:i + stride * oh:stride, j:j + stride * ow:stride][..., :oh, :ow]
        return out

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        s, pad = ctx.stride, ctx.pad
        xp = F.pad(x, (pad,) * 4)
        kh, kw = w.shape[-2:]
        oh, ow = g.shape[-2:]
        gxp, gw = torch.zeros_like(xp), []
        for i in range(kh):
            for j in range(kw):
                rows, cols = slice(i, i + s * oh, s), slice(j, j + s * ow, s)
                up = torch.zeros_like(xp)
                up[..., rows, cols] = g * w[:, i, j, None, None]
                gxp = gxp + up
                gw.append((g * xp[..., i:i + oh, j:j + ow]).sum((0, 2, 3)))
        h, wd = x.shape[-2:]
        return gxp[..., pad:pad + h, pad:pad + wd], torch.stack(gw, -1).view_as(w), None, None
