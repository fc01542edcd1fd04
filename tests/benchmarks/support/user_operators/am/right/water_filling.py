import torch


class _WaterFill(torch.autograd.Function):
    @staticmethod
    def forward(ctx, noise, budget):
        srt = noise.sort(-1).values
        n = torch.arange(1, noise.shape[-1] + 1, device=noise.device, dtype=noise.dtype)
        level = (budget[..., None] + srt.cumsum(-1)) / n
        count = (level > srt).sum(-1, keepdim=True).clamp(min=1)
        level = level.gather(-1, count - 1)
        power = (level - noise).clamp(min=0)
        ctx.save_for_backward(power > 0)
        return power

    @staticmethod
    def backward(ctx, g):
        on, = ctx.saved_tensors
        g = g * on
        g_level = g.sum(-1, keepdim=True) / on.sum(-1, keepdim=True).clamp(min=1)
        return g_level * on - g, g_level.squeeze(-1)


def water_filling(noise, budget):
    # noise (..., N), budget (...) > 0 -> power (..., N) that sums to the budget
    return _WaterFill.apply(noise, budget)
