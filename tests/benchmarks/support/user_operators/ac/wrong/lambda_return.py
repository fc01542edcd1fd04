import torch
from torch import nn


class _LambdaReturn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, reward, value, pcont, bootstrap, lam):
        nxt = torch.cat([value[1:], bootstrap[None]])
        last = bootstrap
        outs = []
        for t in reversed(range(reward.shape[0])):
            last = reward[t] + pcont[t] * ((1 - lam) * nxt[t] + lam * last)
            outs.insert(0, last)
        ret = torch.stack(outs)
        ctx.save_for_backward(value, pcont, bootstrap, ret)
        ctx.lam = lam
        return ret

    @staticmethod
    def backward(ctx, grad):
        value, pcont, bootstrap, ret = ctx.saved_tensors
        lam = ctx.lam
        boot = bootstrap[None]
        nxt = torch.cat([value[1:], boot])
        ret_next = torch.cat([ret[1:], boot])
        g = []
        carry = torch.zeros_like(bootstrap)
        for t in range(grad.shape[0]):
            carry = grad[t] + carry
            g.append(carry)
            carry = carry * pcont[t] * lam
        g = torch.stack(g)
        d_pcont = g * ret_next
        d_nxt = g * pcont * (1 - lam)
        d_value = torch.cat([torch.zeros_like(boot), d_nxt[:-1]])
        d_boot = d_nxt[-1] + carry
        return g, d_value, d_pcont, d_boot, None


class LambdaReturn(nn.Module):
    """Lambda-returns over an imagined rollout. Inputs are time-major unless batch_first."""

    def __init__(self, lam=0.95, batch_first=False):
        super().__init__()
        self.lam = lam
        self.batch_first = batch_first

    def forward(self, reward, value, pcont, bootstrap):
        if self.batch_first:
            reward, value, pcont = (x.transpose(0, 1) for x in (reward, value, pcont))
        ret = _LambdaReturn.apply(reward, value, pcont, bootstrap, self.lam)
        return ret.transpose(0, 1) if self.batch_first else ret
