import torch
from torch.autograd.function import once_differentiable


class GeneralizedAdvantage(torch.autograd.Function):
    """Generalised advantage estimation.

    Args:
        rewards: (T, B)
        values: (T + 1, B), the last row is the bootstrap value
        dones: (T, B) bool, True where the episode ended with that step
        gamma, lam: floats

    Returns:
        advantages (T, B) and returns (T, B) = advantages + values[:-1]
    """

    @staticmethod
    def forward(ctx, rewards, values, dones, gamma=0.99, lam=0.95):
        T = rewards.size(0)
        live = (~dones).to(rewards.dtype)
        delta = rewards + gamma * values[1:] * live - values[:-1]
        adv = torch.zeros_like(delta)
        carry = torch.zeros_like(delta[0]) if T else None
        for t in range(T - 1, -1, -1):
            carry = delta[t] + gamma * lam * live[t] * carry
            adv[t] = carry
        ctx.save_for_backward(live)
        ctx.gamma, ctx.lam = gamma, lam
        return adv, adv + values[:-1]

    @staticmethod
    @once_differentiable
    def backward(ctx, g_adv, g_ret):
        live, = ctx.saved_tensors
        gamma, lam = ctx.gamma, ctx.lam
        g = g_adv + g_ret
        g_delta = torch.zeros_like(g)
        carry = torch.zeros_like(g[0]) if len(g) else None
        for t in range(g.size(0)):
            carry = g[t] + carry
            g_delta[t] = carry
            carry = carry * gamma * lam * live[t]
        g_values = g.new_zeros(g.size(0) + 1, *g.shape[1:])
        g_values[1:] += gamma * live * g_delta
        g_values[:-1] += g_ret - g_delta
        return g_delta, g_values, None, None, None
