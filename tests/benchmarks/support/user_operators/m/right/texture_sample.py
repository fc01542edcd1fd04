import torch
from torch.autograd.function import once_differentiable


class TextureSample(torch.autograd.Function):
    """Bilinear texture lookup with clamp-to-edge addressing.

    texture: (H, W, C)
    xy: (N, 2) texel coordinates, x in [0, W-1], y in [0, H-1]; coordinates
        outside are clamped and get no gradient.
    """

    @staticmethod
    def forward(ctx, texture, xy):
        h, w, _ = texture.shape
        x, y = xy[:, 0].clamp(0, w - 1), xy[:, 1].clamp(0, h - 1)
        x0 = x.floor().clamp(max=max(w - 2, 0)).long()
        y0 = y.floor().clamp(max=max(h - 2, 0)).long()
        x1, y1 = (x0 + 1).clamp(max=w - 1), (y0 + 1).clamp(max=h - 1)
        fx, fy = (x - x0).unsqueeze(1), (y - y0).unsqueeze(1)
        ctx.save_for_backward(texture, xy, x0, y0, x1, y1, fx, fy)
        top = (1 - fx) * texture[y0, x0] + fx * texture[y0, x1]
        bottom = (1 - fx) * texture[y1, x0] + fx * texture[y1, x1]
        return (1 - fy) * top + fy * bottom

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        texture, xy, x0, y0, x1, y1, fx, fy = ctx.saved_tensors
        h, w, c = texture.shape
        grad_texture = grad_xy = None
        if ctx.needs_input_grad[0]:
            flat = texture.new_zeros(h * w, c)
            flat.index_add_(0, y0 * w + x0, grad * (1 - fx) * (1 - fy))
            flat.index_add_(0, y0 * w + x1, grad * fx * (1 - fy))
            flat.index_add_(0, y1 * w + x0, grad * (1 - fx) * fy)
            flat.index_add_(0, y1 * w + x1, grad * fx * fy)
            grad_texture = flat.view(h, w, c)
        if ctx.needs_input_grad[1]:
            dx = (1 - fy) * (texture[y0, x1] - texture[y0, x0]) + fy * (texture[y1, x1] - texture[y1, x0])
            dy = (1 - fx) * (texture[y1, x0] - texture[y0, x0]) + fx * (texture[y1, x1] - texture[y0, x1])
            limit = torch.tensor([w - 1, h - 1], dtype=xy.dtype, device=xy.device)
            inside = (xy >= 0) & (xy <= limit)
            grad_xy = torch.stack([(grad * dx).sum(1), (grad * dy).sum(1)], dim=1) * inside
        return grad_texture, grad_xy
