import torch


class BackwardWarp(torch.autograd.Function):
    """Warp ``img`` (B, C, H, W) with ``flow`` (B, 2, H, W) in pixels, bilinear, border padding; H, W >= 2."""

    @staticmethod
    def corners(flow):
        B, _, H, W = flow.shape
        xs = torch.arange(W, dtype=flow.dtype, device=flow.device) + flow[:, 0]
        ys = torch.arange(H, dtype=flow.dtype, device=flow.device)[:, None] + flow[:, 1]
        x, y = xs.clamp(0, W - 1), ys.clamp(0, H - 1)
        x0, y0 = x.detach().floor().clamp(max=W - 2), y.detach().floor().clamp(max=H - 2)
        i00 = (y0 * W + x0).long().reshape(B, 1, H * W)
        inside = ((xs > 0) & (xs < W - 1), (ys > 0) & (ys < H - 1))
        return (x - x0)[:, None], (y - y0)[:, None], i00, W, inside

    @staticmethod
    def pick(img, idx):
        return img.flatten(2).gather(2, idx.expand(-1, img.shape[1], -1)).view_as(img)

    @staticmethod
    def forward(ctx, img, flow):
        ctx.save_for_backward(img, flow)
        fx, fy, i, W, _ = BackwardWarp.corners(flow)
        p = BackwardWarp.pick
        top = p(img, i) * (1 - fx) + p(img, i + 1) * fx
        bottom = p(img, i + W) * (1 - fx) + p(img, i + W + 1) * fx
        return top * (1 - fy) + bottom * fy

    @staticmethod
    def backward(ctx, grad):
        img, flow = ctx.saved_tensors
        fx, fy, i, W, (in_x, in_y) = BackwardWarp.corners(flow)
        gimg = gflow = None
        if ctx.needs_input_grad[0]:
            gimg = torch.zeros_like(img).flatten(2)
            for off, w in ((0, (1 - fx) * (1 - fy)), (1, fx * (1 - fy)), (W, (1 - fx) * fy), (W + 1, fx * fy)):
                idx = (i + off).expand(-1, img.shape[1], -1)
                gimg = gimg.scatter_add(2, idx, (grad * w).flatten(2))
            gimg = gimg.view_as(img)
        if ctx.needs_input_grad[1]:
            a, b, c, d = (BackwardWarp.pick(img, i + o) for o in (0, 1, W, W + 1))
            gx = (grad * ((b - a) * (1 - fy) + (d - c) * fy)).sum(1)
            gy = (grad * ((c - a) * (1 - fx) + (d - b) * fx)).sum(1)
            gflow = torch.stack([gx, gy], 1)
        return gimg, gflow
