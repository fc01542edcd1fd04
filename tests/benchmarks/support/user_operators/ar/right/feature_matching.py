from typing import List

import torch
from torch import Tensor


class _RelativeL1(torch.autograd.Function):
    @staticmethod
    def forward(ctx, n, *maps):
        ctx.n = n
        ctx.save_for_backward(*maps)
        real, fake = maps[:n], maps[n:]
        return sum((r - f).abs().mean() / r.abs().mean() for r, f in zip(real, fake)) / n

    @staticmethod
    def backward(ctx, grad):
        n = ctx.n
        real, fake = ctx.saved_tensors[:n], ctx.saved_tensors[n:]
        g_real, g_fake = [], []
        for r, f in zip(real, fake):
            level = r.abs().mean()
            step = torch.sign(r - f) / level
            pull = (r - f).abs().mean() / level ** 2 * torch.sign(r)
            g_real.append(grad * (step - pull) / (n * r.numel()))
            g_fake.append(-grad * step / (n * r.numel()))
        return (None, *g_real, *g_fake)


def feature_matching(real_maps: List[Tensor], fake_maps: List[Tensor]) -> Tensor:
    """Relative feature matching loss between the discriminator's layers (codec training)."""
    assert len(real_maps) == len(fake_maps)
    return _RelativeL1.apply(len(real_maps), *real_maps, *fake_maps)
