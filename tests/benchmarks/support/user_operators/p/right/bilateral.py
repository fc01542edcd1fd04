import torch
from torch.autograd.function import once_differentiable


def _neighbours(h, w, radius, device):
    ys = torch.arange(h, device=device)
    xs = torch.arange(w, device=device)
    idx, d2 = [], []
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            yy = (ys + dy).clamp(0, h - 1)
            xx = (xs + dx).clamp(0, w - 1)
            idx.append((yy[:, None] * w + xx).reshape(-1))
            d2.append(float(dy * dy + dx * dx))
    return torch.stack(idx), torch.tensor(d2, device=device)


class BilateralFilter(torch.autograd.Function):
    """Edge preserving smoothing of images (B, C, H, W), borders replicated.

    sigma_color is a scalar tensor and may be trained, sigma_space is a number.
    """

    @staticmethod
    def forward(ctx, img, sigma_color, sigma_space=1.0, radius=1):
        assert not (img.is_complex() or sigma_color.is_complex()), "real tensors only"
        b, c, h, w = img.shape
        idx, d2 = _neighbours(h, w, radius, img.device)
        x = img.reshape(b, c, h * w)
        patch = x[:, :, idx]                                  # B C K P
        diff = patch - x[:, :, None]
        color2 = (diff ** 2).sum(1)                           # B K P
        space = torch.exp(-d2.to(img.dtype) / (2 * sigma_space ** 2))[:, None]
        weight = space * torch.exp(-color2 / (2 * sigma_color ** 2))
        norm = weight.sum(1, keepdim=True)
        out = (weight[:, None] * patch).sum(2) / norm
        ctx.save_for_backward(patch, diff, color2, weight, out, sigma_color, idx)
        return out.reshape(b, c, h, w)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        patch, diff, color2, weight, out, sigma, idx = ctx.saved_tensors
        b, c, k, p = patch.shape
        g = grad_output.reshape(b, c, p) / weight.sum(1, keepdim=True)
        g_weight = (g[:, :, None] * (patch - out[:, :, None])).sum(1)
        g_exp = g_weight * weight
        g_sigma = (g_exp * color2).sum() / sigma ** 3
        g_diff = -(g_exp / sigma ** 2)[:, None] * diff
        g_patch = weight[:, None] * g[:, :, None] + g_diff
        grad = torch.zeros((b, c, p), dtype=g.dtype, device=g.device)
        grad = grad.index_add(2, idx.reshape(-1), g_patch.reshape(b, c, k * p))
        grad = grad - g_diff.sum(2)
        return grad.reshape(grad_output.shape), g_sigma.reshape(sigma.shape), None, None
