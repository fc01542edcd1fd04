import torch
from torch.autograd import Function

_OFFSETS = ((0, 1), (1, 0), (0, -1), (-1, 0))


def _box(x, radius):
    total = 0
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            total = total + x.roll((dy, dx), (-2, -1))
    return total


class MINDDescriptor(Function):
    @staticmethod
    def forward(ctx, image, radius=1, eps=1e-4):
        ctx.save_for_backward(image)
        ctx.radius, ctx.eps = radius, eps
        dist = torch.stack([_box((image - image.roll(o, (-2, -1))).square(), radius) for o in _OFFSETS], 1)
        variance = dist.mean(1, keepdim=True) + eps
        return torch.exp(-dist / variance)

    @staticmethod
    def backward(ctx, grad):
        (image,) = ctx.saved_tensors
        diff = torch.stack([image - image.roll(o, (-2, -1)) for o in _OFFSETS], 1)
        dist = _box(diff.square(), ctx.radius)
        variance = dist.mean(1, keepdim=True) + ctx.eps
        scaled = grad * torch.exp(-dist / variance) / variance
        grad_variance = (scaled * dist).sum(1, keepdim=True) / variance
        grad_dist = grad_variance / len(_OFFSETS) - scaled
        grad_diff = 2 * _box(grad_dist, ctx.radius) * diff
        grad_image = grad_diff.sum(1)
        for k, (dy, dx) in enumerate(_OFFSETS):
            grad_image = grad_image - grad_diff[:, k].roll((dy, dx), (-2, -1))
        return grad_image, None, None
