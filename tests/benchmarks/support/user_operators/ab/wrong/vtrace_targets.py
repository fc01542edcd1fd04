import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class VTrace(torch.autograd.Function):
    """IMPALA's value targets v_t for log importance ratios (T,), values (T,), bootstrap (), rewards (T,)."""

    @staticmethod
    def forward(ctx, log_rho: Tensor, values: Tensor, bootstrap: Tensor, rewards: Tensor, gamma: float = 0.99,
                rho_bar: float = 1.0, c_bar: float = 1.0) -> Tensor:
        ratio = log_rho.exp()
        rho, c = ratio.clamp(max=rho_bar), ratio.clamp(max=c_bar)
        nxt = torch.cat([values[1:], bootstrap[None]])
        td = rewards + gamma * nxt - values
        acc = torch.zeros_like(bootstrap)
        accs = torch.zeros_like(values)
        for t in reversed(range(len(values))):
            accs[t] = acc
            acc = rho[t] * td[t] + gamma * c[t] * acc
        out = values + rho * td + gamma * c * accs
        ctx.save_for_backward(ratio, td, accs)
        ctx.conf = gamma, rho_bar, c_bar
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):
        ratio, td, accs = ctx.saved_tensors
        gamma, rho_bar, c_bar = ctx.conf
        rho, c = ratio.clamp(max=rho_bar), ratio.clamp(max=c_bar)
        lam = torch.zeros_like(g)
        carry = torch.zeros_like(g[0])
        for t in range(len(g)):
            lam[t] = g[t] + carry
            carry = gamma * c[t] * lam[t]
        g_rho = lam * td
        g_c = gamma * lam * accs
        g_ratio = g_rho
        g_ratio = g_ratio + torch.where(ratio < c_bar, g_c, torch.zeros_like(g_c))
        g_td = lam * rho
        g_values = g - g_td
        g_values[1:] += gamma * g_td[:-1]
        return g_ratio * ratio, g_values, gamma * g_td[-1], g_td, None, None, None
