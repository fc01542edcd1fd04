import torch


def _dot(a, b):
    return (a * b).flatten(1).sum(1).view(-1, *[1] * (a.dim() - 1))


class CFGZeroStar(torch.autograd.Function):
    @staticmethod
    def forward(cond, uncond, guidance_scale):
        s = _dot(cond, uncond) / (_dot(uncond, uncond) + 1e-8)
        return s * uncond + guidance_scale * (cond - s * uncond)

    @staticmethod
    def setup_context(ctx, inputs, output):
        cond, uncond, ctx.guidance_scale = inputs
        ctx.save_for_backward(cond, uncond)

    @staticmethod
    def backward(ctx, grad):
        cond, uncond = ctx.saved_tensors
        w = ctx.guidance_scale
        sq = _dot(uncond, uncond) + 1e-8
        s = _dot(cond, uncond) / sq
        ds = (1 - w) * _dot(grad, uncond)
        d_cond = w * grad + ds * uncond / sq
        d_uncond = (1 - w) * s * grad + ds * (cond - 2 * s * uncond) / sq
        return d_cond, d_uncond, None
