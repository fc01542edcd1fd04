import torch


def _corners(reward, done, gamma, lo, hi, n):
    support = torch.linspace(lo, hi, n, dtype=reward.dtype, device=reward.device)
    tz = reward[:, None] + gamma * (1 - done.to(reward.dtype))[:, None] * support
    pos = (tz.clamp(lo, hi) - lo) / ((hi - lo) / (n - 1))
    low = pos.floor().long().clamp(0, n - 1)
    high = pos.ceil().long().clamp(0, n - 1)
    return pos, low, high


class CategoricalProjection(torch.autograd.Function):
    """Bellman-projects a categorical value distribution (batch, atoms) on the fixed support (C51).

    Linear in ``probs``; rewards and done flags are data.
    """

    @staticmethod
    def forward(ctx, probs, reward, done, gamma, lo=-10.0, hi=10.0):
        pos, low, high = _corners(reward, done, gamma, lo, hi, probs.shape[1])
        ctx.save_for_backward(pos, low, high)
        whole = (low == high).to(probs.dtype)
        w_low, w_high = (high - pos) + whole, pos - low
        out = torch.zeros_like(probs)
        out.scatter_add_(1, low, probs * w_low)
        out.scatter_add_(1, high, probs * w_high)
        return out

    @staticmethod
    def backward(ctx, g):
        pos, low, high = ctx.saved_tensors
        whole = (low == high).to(g.dtype)
        w_low, w_high = (high - pos) + whole, pos - low
        return g.gather(1, low) * w_low + g.gather(1, high) * w_high, None, None, None, None, None
