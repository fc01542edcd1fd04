"""Total variation with a smooth absolute value, used as a prior in deblurring."""
import torch
import torch.nn.functional as F


class CharbonnierTV(torch.autograd.Function):
    """Anisotropic total variation sum(sqrt(d^2 + eps^2)) over the two last axes.

    Args:
        img: (..., H, W)
        eps: smoothing, > 0
        reduction: 'none' (one value per image, shape (...)), 'sum', or 'mean'
            (the sum divided by the number of elements of img)
    """

    @staticmethod
    def forward(ctx, img, eps=1e-2, reduction="mean"):
        if reduction not in ("none", "sum", "mean"):
            raise ValueError(f"unknown reduction {reduction!r}")
        assert img.dim() >= 2 and eps > 0
        dh = img[..., 1:, :] - img[..., :-1, :]
        dw = img[..., :, 1:] - img[..., :, :-1]
        tv = (dh * dh + eps * eps).sqrt().sum((-2, -1)) + (dw * dw + eps * eps).sqrt().sum((-2, -1))
        ctx.save_for_backward(img)
        ctx.eps, ctx.reduction = eps, reduction
        if reduction == "none":
            return tv
        tv = tv.sum()
        return tv / img.numel() if reduction == "mean" else tv

    @staticmethod
    def backward(ctx, grad):
        img, = ctx.saved_tensors
        e2 = ctx.eps ** 2
        dh = img[..., 1:, :] - img[..., :-1, :]
        dw = img[..., :, 1:] - img[..., :, :-1]
        dh = dh / (dh * dh + e2).sqrt()
        dw = dw / (dw * dw + e2).sqrt()
        gi = F.pad(dh, (0, 0, 1, 0)) - F.pad(dh, (0, 0, 0, 1))
        gi = gi + F.pad(dw, (1, 0)) - F.pad(dw, (0, 1))
        if ctx.reduction == "none":
            grad = grad[..., None, None]
        elif ctx.reduction == "mean":
            grad = grad / (img.shape[-1] * img.shape[-2])
        return grad * gi, None, None
