import torch
from torch.autograd.function import once_differentiable


class _MaskedInstanceNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask, eps):
        m = mask.unsqueeze(1).to(x.dtype)
        n = m.sum(-1, keepdim=True).clamp(min=1)
        mean = (x * m).sum(-1, keepdim=True) / n
        centred = (x - mean) * m
        var = centred.square().sum(-1, keepdim=True) / n
        rstd = torch.rsqrt(var + eps)
        y = centred * rstd
        ctx.save_for_backward(y, rstd, m, n)
        return y.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        y, rstd, m, n = ctx.saved_tensors
        gy = gy * m
        mean_g = gy.sum(-1, keepdim=True) / n
        mean_gy = (gy * y).sum(-1, keepdim=True) / n
        gx = (gy - mean_g - y * mean_gy) * rstd * m
        return gx, None, None


def masked_instance_norm(x, lengths, eps=1e-5):
    """Instance norm of padded sequences.

    x: (B, C, T), lengths: (B,) integers. Frames behind a sequence's length neither count in the
    statistics nor appear in the output (zeros).
    """
    steps = torch.arange(x.shape[-1], device=x.device)
    mask = steps[None, :] < lengths[:, None]
    return _MaskedInstanceNorm.apply(x, mask, eps)
