"""Generalised advantage estimation that keeps the graph through rewards and values."""
from typing import Tuple

import torch
from torch import Tensor
from torch.autograd import Function


class GAEAdvantage(Function):
    """Advantages and returns of T steps of B environments.

    Args:
        rewards: (T, B)
        values: (T + 1, B), the last row is the bootstrap value
        dones: (T, B) bool, True where the episode ended with this step
        gamma: discount
        lam: trade-off of bias and variance
    Returns:
        advantages (T, B), returns (T, B) = advantages + values[:-1]
    """

    @staticmethod
    def forward(ctx, rewards: Tensor, values: Tensor, dones: Tensor,
                gamma: float = 0.99, lam: float = 0.95) -> Tuple[Tensor, Tensor]:
        assert values.size(0) == rewards.size(0) + 1
        alive = (~dones).to(rewards.dtype)
        delta = rewards + gamma * alive * values[1:] - values[:-1]
        acc = torch.zeros_like(rewards[0])
        adv = torch.empty_like(rewards)
        for t in range(rewards.size(0) - 1, -1, -1):
            acc = delta[t] + gamma * lam * alive[t] * acc
            adv[t] = acc
        ctx.save_for_backward(alive)
        ctx.gamma, ctx.lam = gamma, lam
        return adv, adv + values[:-1]

    @staticmethod
    def backward(ctx, g_adv: Tensor, g_ret: Tensor):
        alive, = ctx.saved_tensors
        g = g_adv + g_ret
        steps = [g[0]]
        for t in range(1, g.size(0)):
            steps.append(g[t] + ctx.gamma * ctx.lam * alive[t - 1] * steps[-1])
        d = torch.stack(steps)
        pad = torch.zeros_like(d[:1])
        g_values = torch.cat([g_ret - d, pad]) + torch.cat([pad, ctx.gamma * alive * d])
        return d, g_values, None, None, None
