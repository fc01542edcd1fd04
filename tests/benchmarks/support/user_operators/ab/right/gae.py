import torch


class GAE(torch.autograd.Function):
    """Generalised advantage estimates of one trajectory.

    rewards, values, dones: (T,); last_value: scalar. ``dones[t]`` says that the episode ended with step t.
    Returns the advantages and the returns (advantages + values).
    """

    @staticmethod
    def forward(ctx, rewards, values, last_value, dones, gamma=0.99, lam=0.95):
        ctx.save_for_backward(dones)
        ctx.gamma, ctx.lam = gamma, lam
        adv = torch.empty_like(rewards)
        acc, nxt = torch.zeros_like(last_value), last_value
        for t in range(len(rewards) - 1, -1, -1):
            live = 1.0 - float(dones[t])
            delta = rewards[t] + gamma * live * nxt - values[t]
            acc = delta + gamma * lam * live * acc
            adv[t] = acc
            nxt = values[t]
        return adv, adv + values

    @staticmethod
    def backward(ctx, g_adv, g_ret):
        dones, = ctx.saved_tensors
        live = (~dones).to(g_adv.dtype)
        decay = ctx.gamma * ctx.lam
        g = g_adv + g_ret
        acc, d_delta = torch.zeros_like(g[0]), []
        for t in range(len(g)):
            prev = live[t - 1] if t > 0 else 0.0
            acc = g[t] + decay * prev * acc
            d_delta.append(acc)
        d_delta = torch.stack(d_delta)
        boot = ctx.gamma * live * d_delta
        g_values = g_ret - d_delta + torch.cat([torch.zeros_like(boot[:1]), boot[:-1]])
        return d_delta, g_values, boot[-1], None, None, None
