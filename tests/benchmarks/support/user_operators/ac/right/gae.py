import torch
from torch.autograd import Function


class GAEFunction(Function):
    @staticmethod
    def forward(ctx, rewards, values, dones, gamma=0.99, lam=0.95):
        T = rewards.shape[0]
        nd = 1.0 - dones.to(rewards.dtype)
        delta = rewards + gamma * values[1:] * nd - values[:-1]
        adv = torch.empty_like(rewards)
        last = torch.zeros_like(rewards[0])
        for t in reversed(range(T)):
            last = delta[t] + gamma * lam * nd[t] * last
            adv[t] = last
        ctx.save_for_backward(nd)
        ctx.gamma, ctx.lam = gamma, lam
        return adv

    @staticmethod
    def backward(ctx, grad_adv):
        nd, = ctx.saved_tensors
        gamma, lam = ctx.gamma, ctx.lam
        T = grad_adv.shape[0]
        carry = grad_adv[0]
        grads = [carry]
        for t in range(1, T):
            carry = grad_adv[t] + gamma * lam * nd[t - 1] * carry
            grads.append(carry)
        g = torch.stack(grads)
        zero = torch.zeros_like(g[:1])
        grad_values = torch.cat([zero, gamma * nd * g]) - torch.cat([g, zero])
        return g, grad_values, None, None, None
