import torch
import torch.nn.functional as F


class _Router(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, mask):
        ctx.save_for_backward(logits, mask)
        n, experts = mask.sum().clamp(min=1), logits.shape[-1]
        p = logits.softmax(-1)
        hard = F.one_hot(logits.argmax(-1), experts).to(p.dtype)
        ctx.load = load = (hard * mask[:, None]).sum(0) / n
        balance = experts * (load * (p * mask[:, None]).sum(0) / n).sum()
        z = (logits.logsumexp(-1).square() * mask).sum() / n
        return balance, z

    @staticmethod
    def backward(ctx, g_balance, g_z):
        logits, mask = ctx.saved_tensors
        n, experts = mask.sum().clamp(min=1), logits.shape[-1]
        p = logits.softmax(-1)
        gp = g_balance * experts * ctx.load * mask[:, None] / n
        gl = p * (gp - (gp * p).sum(-1, keepdim=True))
        gl = gl + g_z * 2 * (logits.logsumexp(-1) * mask)[:, None] / n * p
        return gl, None


def router_losses(logits, mask=None):
    """load balancing loss and z-loss of a switch router; logits (N, E), mask (N,)"""
    mask = torch.ones_like(logits[:, 0]) if mask is None else mask.to(logits.dtype)
    return _Router.apply(logits, mask.detach())
