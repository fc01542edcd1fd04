import torch
from torch.autograd.function import once_differentiable


class VTraceTargets(torch.autograd.Function):
    """V-trace value targets (IMPALA), time major.

    log_rhos, rewards, discounts: [T, B]; values: [T + 1, B], the last row the bootstrap value.
    """

    @staticmethod
    def forward(ctx, log_rhos, values, rewards, discounts, clip_rho=1.0, clip_c=1.0):
        rhos = log_rhos.exp()
        rho_c = rhos.clamp(max=clip_rho)
        cs = rhos.clamp(max=clip_c)
        td = rewards + discounts * values[1:] - values[:-1]
        acc = torch.zeros_like(values[0])
        accs = []
        for t in range(rewards.shape[0] - 1, -1, -1):
            accs.append(acc)
            acc = rho_c[t] * td[t] + discounts[t] * cs[t] * acc
            if t == 0:
                accs.append(acc)
        accs = torch.stack(accs[::-1])
        ctx.save_for_backward(rhos, values, discounts, td, accs)
        ctx.clip_rho, ctx.clip_c = clip_rho, clip_c
        return values[:-1] + accs[:-1]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_vs):
        rhos, values, discounts, td, accs = ctx.saved_tensors
        rho_c = rhos.clamp(max=ctx.clip_rho)
        cs = rhos.clamp(max=ctx.clip_c)
        carry = torch.zeros_like(grad_vs[0])
        g_acc = []
        for t in range(grad_vs.shape[0]):
            carry = grad_vs[t] + carry
            g_acc.append(carry)
            carry = discounts[t] * cs[t] * carry
        g_acc = torch.stack(g_acc)

        g_td = g_acc * rho_c
        g_values = torch.zeros_like(values)
        g_values[:-1] = grad_vs - g_td
        g_values[1:] += g_td * discounts
        g_discounts = g_td * values[1:] + g_acc * cs * accs[1:]
        g_rho = g_acc * td * (rhos <= ctx.clip_rho)
        g_rho = g_rho + g_acc * discounts * accs[1:] * (rhos <= ctx.clip_c)
        return g_rho * rhos, g_values, g_td, g_discounts, None, None
