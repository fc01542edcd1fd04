import torch


class RescaledCFG(torch.autograd.Function):
    """Classifier free guidance with rescaled noise.

    cond, uncond: (B, ...) model outputs; the standard deviations are per sample.
    """

    @staticmethod
    def forward(ctx, cond, uncond, guidance_scale, guidance_rescale=0.0):
        if cond.is_complex() or uncond.is_complex():
            raise TypeError("RescaledCFG: expected real floating point tensors")
        if cond.shape != uncond.shape or cond.dim() < 2:
            raise ValueError("cond and uncond must both be (B, ...)")
        dims = tuple(range(1, cond.dim()))
        x = uncond + guidance_scale * (cond - uncond)
        ratio = cond.std(dims, keepdim=True) / x.std(dims, keepdim=True)
        ctx.save_for_backward(cond, uncond)
        ctx.s, ctx.phi = guidance_scale, guidance_rescale
        return guidance_rescale * x * ratio + (1 - guidance_rescale) * x

    @staticmethod
    def backward(ctx, grad):
        cond, uncond = ctx.saved_tensors
        s, phi = ctx.s, ctx.phi
        dims = tuple(range(1, cond.dim()))
        x = uncond + s * (cond - uncond)
        std_c = cond.std(dims, keepdim=True)
        std_x = x.std(dims, keepdim=True)
        n = x[0].numel()
        corr = phi * (grad * x).sum(dims, keepdim=True)
        g_x = grad * (phi * std_c / std_x + 1 - phi)
        g_x = g_x - corr * std_c / std_x ** 3 * (x - x.mean(dims, keepdim=True)) / (n - 1)
        g_c = corr / (std_x * std_c) * (cond - cond.mean(dims, keepdim=True)) / (n - 1)
        return s * g_x + g_c, (1 - s) * g_x, None, None
