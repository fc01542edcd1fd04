"""Sample a feature map at sub-pixel points; everything outside of the map counts as zero."""
import torch
import torch.autograd as autograd


def _lookup(feat, ix, iy):
    # feat B C H W ; ix, iy B N (long) -> B C N, plus the mask of corners inside
    B, C, H, W = feat.shape
    ok = (ix >= 0) & (ix < W) & (iy >= 0) & (iy < H)
    lin = iy.clamp(0, H - 1) * W + ix.clamp(0, W - 1)
    vals = feat.flatten(2).gather(2, lin.unsqueeze(1).expand(-1, C, -1))
    return vals * ok.unsqueeze(1).to(feat.dtype), lin, ok


class SamplePoints(autograd.Function):
    @staticmethod
    def forward(ctx, feat, pts):
        ctx.save_for_backward(feat, pts)
        base = pts.floor()
        fx, fy = (pts - base).unbind(-1)
        x0, y0 = base.long().unbind(-1)
        out = 0
        for dy, wy in ((0, 1 - fy), (1, fy)):
            for dx, wx in ((0, 1 - fx), (1, fx)):
                v, _, _ = _lookup(feat, x0 + dx, y0 + dy)
                out = out + v * (wx * wy).unsqueeze(1)
        return out

    @staticmethod
    def backward(ctx, g):
        feat, pts = ctx.saved_tensors
        B, C, H, W = feat.shape
        base = pts.detach().floor()
        fx, fy = (pts - base).unbind(-1)
        x0, y0 = base.long().unbind(-1)
        gfeat = torch.zeros_like(feat).flatten(2)
        gx = torch.zeros_like(fx)
        gy = torch.zeros_like(fy)
        for dy in (0, 1):
            for dx in (0, 1):
                wx = fx if dx else 1 - fx
                wy = fy if dy else 1 - fy
                sx = 1.0 if dx else -1.0
                sy = 1.0 if dy else -1.0
                v, lin, ok = _lookup(feat, x0 + dx, y0 + dy)
                w = wx * wy * ok.to(feat.dtype)
                gfeat = gfeat.scatter_add(2, lin.unsqueeze(1).expand(-1, C, -1), g * w.unsqueeze(1))
                inner = (g * v).sum(1)
                gx = gx + sx * wy * inner
                gy = gy + sy * wx * inner
        return gfeat.view_as(feat), torch.stack([gx, gy], -1)
