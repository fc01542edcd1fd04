import torch


class _Smooth3D(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scales, opacity, filter_3d):
        var = scales.square() + filter_3d.square()
        new_scales = var.sqrt()
        coef = scales.prod(-1, keepdim=True) / new_scales.prod(-1, keepdim=True)
        ctx.save_for_backward(scales, opacity, filter_3d)
        return new_scales, opacity * coef

    @staticmethod
    def backward(ctx, g_scales, g_opacity):
        scales, opacity, filter_3d = ctx.saved_tensors
        var = scales.square() + filter_3d.square()
        new_scales = var.sqrt()
        coef = scales.prod(-1, keepdim=True) / new_scales.prod(-1, keepdim=True)
        g_coef = g_opacity * opacity * coef
        d_scales = g_scales * scales / new_scales + g_coef * (1 / scales - 1 / new_scales)
        d_filter = filter_3d * (g_scales / new_scales - g_coef / var).sum(-1, keepdim=True)
        return d_scales, g_opacity * coef, d_filter


def mip_smoothing(scales, opacity, filter_3d):
    """3D smoothing filter of Mip-Splatting with opacity compensation.

    scales: [N, 3] positive, opacity: [N, 1], filter_3d: [N, 1] sampling limit per Gaussian
    """
    return _Smooth3D.apply(scales, opacity, filter_3d)
