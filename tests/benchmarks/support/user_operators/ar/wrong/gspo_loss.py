from dataclasses import dataclass

import torch


@dataclass
class GSPOConfig:
    clip_low: float = 3e-4
    clip_high: float = 4e-4


class _SequenceRatio(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logps, old_logps, advantages, mask, low, high):
        length = mask.sum(1).clamp(min=1)
        s = torch.exp(((logps - old_logps) * mask).sum(1) / length)
        ctx.save_for_backward(logps, old_logps, advantages, mask)
        ctx.clip = (low, high)
        return -torch.minimum(s * advantages, s.clamp(1 - low, 1 + high) * advantages).mean()

    @staticmethod
    def backward(ctx, grad):
        logps, old_logps, advantages, mask = ctx.saved_tensors
        low, high = ctx.clip
        length = mask.sum(1).clamp(min=1)
        s = torch.exp(((logps - old_logps) * mask).sum(1) / length)
        active = torch.where(advantages > 0, s < 1 + high, s > 1 - low)
        ds = -grad * advantages * active / advantages.numel()
        return (ds * s)[:, None] * mask / mask.size(1), None, None, None, None, None


def gspo_loss(logps, old_logps, advantages, mask, config=GSPOConfig()):
    return _SequenceRatio.apply(logps, old_logps, advantages, mask, config.clip_low, config.clip_high)
