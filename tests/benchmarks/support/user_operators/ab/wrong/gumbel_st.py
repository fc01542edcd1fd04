import torch


class _Choice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, noise, tau, hard, allowed):
        z = (logits + noise) / tau
        if allowed is not None:
            z = z.masked_fill(~allowed, float("-inf"))
        ctx.save_for_backward(logits, noise, allowed)
        ctx.tau, ctx.hard = tau, hard
        if hard:
            return torch.nn.functional.one_hot(z.argmax(-1), z.shape[-1]).to(z.dtype)
        return z.softmax(-1)

    @staticmethod
    def backward(ctx, g):
        logits, noise, allowed = ctx.saved_tensors
        z = (logits + noise) / ctx.tau
        if allowed is not None:
            z = z.masked_fill(~allowed, float("-inf"))
        p = z.softmax(-1)
        gz = p * (g - (g * p).sum(-1, keepdim=True))
        if not ctx.hard:
            gz = gz / ctx.tau
        return gz, None, None, None, None


def gumbel_choice(logits, noise, tau=1.0, hard=False, allowed=None):
    """Gumbel-softmax with the Gumbel noise given; hard=True: one-hot forward, the soft sample's gradient."""
    return _Choice.apply(logits, noise.detach(), tau, hard, allowed)
