import torch
from torch.autograd.function import once_differentiable


def _corners(img, x0, y0):
    b, c, h, w = img.shape
    flat = img.reshape(b, c, h * w)
    out = []
    for dy in (0, 1):
        for dx in (0, 1):
            at = ((y0 + dy) * w + x0 + dx).reshape(b, 1, -1).expand(-1, c, -1)
            out.append((at, flat.gather(2, at).reshape(b, c, *x0.shape[1:])))
    return out


class _Warp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, img, flow):
        h, w = img.shape[-2:]
        x = torch.arange(w, device=img.device) + flow[:, 0]
        y = torch.arange(h, device=img.device)[:, None] + flow[:, 1]
        ctx.in_x, ctx.in_y = (x >= 0) & (x <= w - 1), (y >= 0) & (y <= h - 1)
        x, y = x.clamp(0, w - 1), y.clamp(0, h - 1)
        x0, y0 = x.floor().clamp(max=w - 2).long(), y.floor().clamp(max=h - 2).long()
        tx, ty = (x - x0)[:, None], (y - y0)[:, None]
        ctx.save_for_backward(img, tx, ty)
        ctx.x0, ctx.y0 = x0, y0
        (_, a), (_, b), (_, c), (_, d) = _corners(img, x0, y0)
        return (a * (1 - tx) + b * tx) * (1 - ty) + (c * (1 - tx) + d * tx) * ty

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        img, tx, ty = ctx.saved_tensors
        (ia, a), (ib, b), (ic, c), (id_, d) = _corners(img, ctx.x0, ctx.y0)
        gi = img.new_zeros(img.shape[0], img.shape[1], img.shape[2] * img.shape[3])
        for at, w in ((ia, (1 - tx) * (1 - ty)), (ib, tx * (1 - ty)), (ic, (1 - tx) * ty), (id_, tx * ty)):
            gi.scatter_add_(2, at, (g * w).reshape(at.shape))
        gx = (g * ((b - a) * (1 - ty) + (d - c) * ty)).sum(1) * ctx.in_x
        gy = (g * ((c - a) * (1 - tx) + (d - b) * tx)).sum(1) * ctx.in_y
        return gi.view(img.shape), torch.stack([gx, gy], 1)


def flow_warp(image, flow):
    """Backward warping by a flow in pixels, border padding.

    image: (B, C, H, W), H and W at least 2; flow: (B, 2, H, W), first x then y.
    """
    return _Warp.apply(image, flow)
