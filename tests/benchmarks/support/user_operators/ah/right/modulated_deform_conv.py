import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _out_size(size, k, stride, padding, dilation):
    return (size + 2 * padding - dilation * (k - 1) - 1) // stride + 1


class _Sampler:
    """Bilinear taps at deformed kernel positions. Positions are (N, K, Ho, Wo)."""

    def __init__(self, x: Tensor, offset: Tensor, kernel, stride, padding, dilation):
        n, c, h, w = x.shape
        kh, kw = kernel
        _, _, ho, wo = offset.shape
        opts = dict(dtype=offset.dtype, device=offset.device)
        ky, kx = torch.meshgrid(torch.arange(kh, **opts), torch.arange(kw, **opts), indexing="ij")
        oy, ox = torch.meshgrid(torch.arange(ho, **opts), torch.arange(wo, **opts), indexing="ij")
        off = offset.reshape(n, kh * kw, 2, ho, wo)
        py = oy * stride - padding + ky.reshape(-1, 1, 1) * dilation + off[:, :, 0]
        px = ox * stride - padding + kx.reshape(-1, 1, 1) * dilation + off[:, :, 1]
        y0, x0 = py.floor(), px.floor()
        ly, lx = py - y0, px - x0
        self.taps = []
        for dy in (0, 1):
            for dx in (0, 1):
                yy, xx = y0 + dy, x0 + dx
                ok = ((yy >= 0) & (yy < h) & (xx >= 0) & (xx < w)).to(offset.dtype)
                index = (yy.clamp(0, h - 1) * w + xx.clamp(0, w - 1)).long()
                wy = ly if dy else 1 - ly
                wx = lx if dx else 1 - lx
                sy, sx = (1 if dy else -1), (1 if dx else -1)
                self.taps.append((index, wy * wx * ok, sy * wx * ok, sx * wy * ok))

    @staticmethod
    def gather(flat, index):
        n, c, _ = flat.shape
        return flat.gather(2, index.reshape(n, 1, -1).expand(n, c, -1)).reshape(n, c, *index.shape[1:])


class ModulatedDeformConv2dFunction(Function):
    """Deformable convolution v2.

    Shapes: ``x (N, C, H, W)``, ``offset (N, 2 * kh * kw, Ho, Wo)`` interleaved ``(dy, dx)``,
    ``mask (N, kh * kw, Ho, Wo)``, ``weight (O, C, kh, kw)``, ``bias (O,)`` or ``None``.
    """

    @staticmethod
    def forward(ctx, x, offset, mask, weight, bias=None, stride=1, padding=0, dilation=1):
        if weight.size(1) != x.size(1):
            raise ValueError(f"weight expects {weight.size(1)} channels, got {x.size(1)}")
        kh, kw = weight.shape[2:]
        ho = _out_size(x.size(2), kh, stride, padding, dilation)
        wo = _out_size(x.size(3), kw, stride, padding, dilation)
        if offset.shape[1:] != (2 * kh * kw, ho, wo) or mask.shape[1:] != (kh * kw, ho, wo):
            raise ValueError("offset or mask does not match the output size")
        s = _Sampler(x, offset, (kh, kw), stride, padding, dilation)
        flat = x.reshape(*x.shape[:2], -1)
        val = sum(s.gather(flat, i) * w.unsqueeze(1) for i, w, _, _ in s.taps)
        out = torch.einsum("nckhw,ock->nohw", val * mask.unsqueeze(1), weight.flatten(2))
        if bias is not None:
            out = out + bias.view(1, -1, 1, 1)
        ctx.save_for_backward(x, offset, mask, weight)
        ctx.with_bias = bias is not None
        ctx.conf = stride, padding, dilation
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, offset, mask, weight = ctx.saved_tensors
        n, c, h, w = x.shape
        s = _Sampler(x, offset, weight.shape[2:], *ctx.conf)
        flat = x.reshape(n, c, -1)
        val = sum(s.gather(flat, i) * wt.unsqueeze(1) for i, wt, _, _ in s.taps)

        grad_col = torch.einsum("nohw,ock->nckhw", grad_output, weight.flatten(2))
        grad_weight = torch.einsum("nohw,nckhw->ock", grad_output, val * mask.unsqueeze(1)).view_as(weight)
        grad_mask = (grad_col * val).sum(1)
        grad_val = grad_col * mask.unsqueeze(1)

        grad_x = torch.zeros_like(flat)
        grad_y = torch.zeros_like(mask)
        grad_xx = torch.zeros_like(mask)
        for index, wt, dwy, dwx in s.taps:
            grad_x.scatter_add_(
                2, index.reshape(n, 1, -1).expand(n, c, -1), (grad_val * wt.unsqueeze(1)).reshape(n, c, -1)
            )
            g = (grad_val * s.gather(flat, index)).sum(1)
            grad_y += g * dwy
            grad_xx += g * dwx
        grad_offset = torch.stack([grad_y, grad_xx], 2).view(offset.shape)
        grad_bias = grad_output.sum((0, 2, 3)) if ctx.with_bias else None
        return grad_x.view(n, c, h, w), grad_offset, grad_mask, grad_weight, grad_bias, None, None, None
