import torch
from torch.autograd.function import once_differentiable


class DiscountedReturn(torch.autograd.Function):
    """G_t = r_t + d_t * G_{t+1}, with G_T = bootstrap (zeros when None).

    rewards and discounts are (T, B); discounts may also be (T, 1) or (1, 1) and is then shared.
    """

    @staticmethod
    def forward(ctx, rewards, discounts, bootstrap=None):
        T = rewards.size(0)
        d = discounts.expand_as(rewards)
        nxt = torch.zeros_like(rewards[0]) if bootstrap is None else bootstrap
        after = []
        ret = [None] * T
        for t in reversed(range(T)):
            after.append(nxt)
            nxt = rewards[t] + d[t] * nxt
            ret[t] = nxt
        after = torch.stack(after[::-1])
        ctx.save_for_backward(d, after)
        ctx.d_shape = discounts.shape
        ctx.boot = bootstrap is not None
        return torch.stack(ret)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d, after = ctx.saved_tensors
        carry = torch.zeros_like(grad[0])
        g_r = []
        for t in range(grad.size(0)):
            carry = carry + grad[t]
            g_r.append(carry)
            carry = carry * d[t]
        g_r = torch.stack(g_r)
        g_d = None
        if ctx.needs_input_grad[1]:
            g_d = g_r * after
            if ctx.d_shape[0] == 1:
                g_d = g_d.mean(0, keepdim=True)
            g_d = g_d.sum_to_size(ctx.d_shape)
        return g_r, g_d, carry if ctx.boot else None
