import torch


def _offsets(radius):
    span = range(-radius, radius + 1)
    return [(i, j) for i in span for j in span if (i, j) != (0, 0)]


class _SoftCensus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, img, radius, eps):
        ctx.save_for_backward(img)
        ctx.radius, ctx.eps = radius, eps
        h, w = img.shape[-2] - 2 * radius, img.shape[-1] - 2 * radius
        c = img[..., radius:radius + h, radius:radius + w]
        out = []
        for i, j in _offsets(radius):
            d = img[..., radius + i:radius + i + h, radius + j:radius + j + w] - c
            out.append(d / torch.sqrt(eps + d * d))
        return torch.stack(out, dim=-3)

    @staticmethod
    def backward(ctx, grad):
        img, = ctx.saved_tensors
        rad, eps = ctx.radius, ctx.eps
        h, w = img.shape[-2] - 2 * rad, img.shape[-1] - 2 * rad
        c = img[..., rad:rad + h, rad:rad + w]
        gi = torch.zeros_like(img)
        gc = torch.zeros_like(c)
        for k, (i, j) in enumerate(_offsets(rad)):
            rows, cols = slice(rad + i, rad + i + h), slice(rad + j, rad + j + w)
            d = img[..., rows, cols] - c
            t = grad[..., k, :, :] * eps / (eps + d * d) ** 1.5
            gi[..., rows, cols] += t
            gc = gc - t
        gi[..., rad:rad + h, rad:rad + w] += gc
        return gi, None, None


def soft_census(img, radius=1, eps=0.81):
    """img (..., H, W) -> (..., (2r+1)^2 - 1, H-2r, W-2r), the ternary census signature."""
    return _SoftCensus.apply(img, radius, eps)
