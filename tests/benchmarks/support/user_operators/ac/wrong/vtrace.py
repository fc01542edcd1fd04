import torch
from torch import Tensor


class VTrace(torch.autograd.Function):
    # Espeholt et al. 2018, all tensors [T, B] except bootstrap_value [B].
    # Unlike the reference implementation the targets stay differentiable, we need
    # d vs / d log_rhos for the meta-objective.

    @staticmethod
    def forward(log_rhos: Tensor, discounts: Tensor, rewards: Tensor, values: Tensor,
                bootstrap_value: Tensor, clip_rho: float, clip_c: float) -> Tensor:
        rhos = log_rhos.exp()
        clipped_rhos = rhos.clamp(max=clip_rho)
        cs = rhos.clamp(max=clip_c)
        v_next = torch.cat([values[1:], bootstrap_value[None]])
        deltas = clipped_rhos * (rewards + discounts * v_next - values)
        acc = torch.zeros_like(bootstrap_value)
        result = []
        for t in range(log_rhos.shape[0] - 1, -1, -1):
            acc = deltas[t] + discounts[t] * cs[t] * acc
            result.append(acc)
        result.reverse()
        return torch.stack(result) + values

    @staticmethod
    def setup_context(ctx, inputs, output):
        log_rhos, discounts, rewards, values, bootstrap_value, clip_rho, clip_c = inputs
        ctx.save_for_backward(log_rhos, discounts, rewards, values, bootstrap_value, output)
        ctx.clips = (clip_rho, clip_c)

    @staticmethod
    def backward(ctx, grad_vs: Tensor):
        log_rhos, discounts, rewards, values, bootstrap_value, vs = ctx.saved_tensors
        clip_rho, clip_c = ctx.clips
        rhos = log_rhos.exp()
        clipped_rhos = rhos.clamp(max=clip_rho)
        cs = rhos.clamp(max=clip_c)
        v_next = torch.cat([values[1:], bootstrap_value[None]])
        acc_next = torch.cat([(vs - values)[1:], torch.zeros_like(bootstrap_value)[None]])

        g = [grad_vs[0]]
        for t in range(1, grad_vs.shape[0]):
            g.append(grad_vs[t] + discounts[t - 1] * cs[t - 1] * g[-1])
        g = torch.stack(g)

        d_clipped = g * (rewards + discounts * v_next - values)
        d_cs = g * discounts * acc_next
        d_log_rhos = rhos * (d_clipped * (rhos < clip_rho) + d_cs * (rhos < clip_rho))
        d_discounts = g * (cs * acc_next + clipped_rhos * v_next)
        d_rewards = g * clipped_rhos
        d_next = d_rewards * discounts
        d_values = grad_vs - d_rewards + torch.cat([torch.zeros_like(d_next[:1]), d_next[:-1]])
        return d_log_rhos, d_discounts, d_rewards, d_values, d_next[-1], None, None
