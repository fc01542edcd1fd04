"""Parallel-beam projector (bilinear sampling along rays) and its adjoint."""
import torch


def _rays(angles, h, w, n_det, n_step):
    s = torch.linspace(-0.5, 0.5, n_det, dtype=angles.dtype, device=angles.device) * (w - 1)
    t = torch.linspace(-0.5, 0.5, n_step, dtype=angles.dtype, device=angles.device) * (h - 1)
    cos, sin = angles.cos().reshape(-1, 1, 1), angles.sin().reshape(-1, 1, 1)
    s, t = s.reshape(1, -1, 1), t.reshape(1, 1, -1)
    x = (w - 1) / 2 + s * cos - t * sin
    y = (h - 1) / 2 + s * sin + t * cos
    x0, y0 = x.floor(), y.floor()
    index, weight = [], []
    for dy in (0, 1):
        for dx in (0, 1):
            xi, yi = x0 + dx, y0 + dy
            inside = (xi >= 0) & (xi < w) & (yi >= 0) & (yi < h)
            index.append((yi.clamp(0, h - 1) * w + xi.clamp(0, w - 1)).long())
            weight.append((1 - (x - xi).abs()) * (1 - (y - yi).abs()) * inside)
    return torch.stack(index, -1), torch.stack(weight, -1)


class ParallelBeam(torch.autograd.Function):
    """image (H, W), angles (A,) in radians, not differentiated -> sinogram (A, n_det)"""

    @staticmethod
    def forward(ctx, image, angles, n_det, n_step):
        index, weight = _rays(angles, *image.shape, n_det, n_step)
        ctx.index, ctx.weight, ctx.shape = index, weight, image.shape
        return (image.reshape(-1)[index] * weight).sum((-1, -2))

    @staticmethod
    def backward(ctx, sino):
        spread = sino[..., None, None] * ctx.weight
        image = torch.zeros(ctx.shape[0] * ctx.shape[1], dtype=sino.dtype, device=sino.device)
        image[ctx.index.reshape(-1)] += spread.reshape(-1)
        return image.reshape(ctx.shape), None, None, None
