"""Differentiable bilinear texture fetch."""
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _cell(coord, size):
    """Pixel coordinate in [0, size - 1] -> left texel and fraction."""
    i0 = coord.floor().clamp(0, size - 2)
    return i0.long(), coord - i0


class BilinearTexture(Function):
    """Sample texture (H, W, C) at uv (P, 2), u along W, both in [0, 1]; clamped outside.

    The texture needs at least two texels in each direction.
    """

    @staticmethod
    def forward(ctx, texture, uv):
        H, W, _ = texture.shape
        if H < 2 or W < 2:
            raise ValueError("texture must be at least 2 x 2")
        ctx.save_for_backward(texture, uv)
        c = uv.clamp(0, 1)
        x0, fx = _cell(c[:, 0] * (W - 1), W)
        y0, fy = _cell(c[:, 1] * (H - 1), H)
        fx, fy = fx[:, None], fy[:, None]
        top = texture[y0, x0] * (1 - fx) + texture[y0, x0 + 1] * fx
        bottom = texture[y0 + 1, x0] * (1 - fx) + texture[y0 + 1, x0 + 1] * fx
        return top * (1 - fy) + bottom * fy

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        texture, uv = ctx.saved_tensors
        H, W, _ = texture.shape
        c = uv.clamp(0, 1)
        x0, fx = _cell(c[:, 0] * (W - 1), W)
        y0, fy = _cell(c[:, 1] * (H - 1), H)
        fx, fy = fx[:, None], fy[:, None]
        g_tex = g_uv = None
        if ctx.needs_input_grad[0]:
            g_tex = torch.zeros_like(texture)
            for dy, wy in ((0, 1 - fy), (1, fy)):
                for dx, wx in ((0, 1 - fx), (1, fx)):
                    g_tex[y0 + dy, x0 + dx] += grad * wy * wx
        if ctx.needs_input_grad[1]:
            t00, t01 = texture[y0, x0], texture[y0, x0 + 1]
            t10, t11 = texture[y0 + 1, x0], texture[y0 + 1, x0 + 1]
            gx = (grad * ((t01 - t00) * (1 - fy) + (t11 - t10) * fy)).sum(1) * (W - 1)
            gy = (grad * ((t10 - t00) * (1 - fx) + (t11 - t01) * fx)).sum(1) * (H - 1)
            inside = (uv >= 0) & (uv <= 1)
            g_uv = torch.stack([gx, gy], 1) * inside
        return g_tex, g_uv
