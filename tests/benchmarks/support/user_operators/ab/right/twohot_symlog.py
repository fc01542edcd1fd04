import torch


class TwoHotSymlogLoss(torch.autograd.Function):
    """Cross entropy to the two-hot code of symlog(target) on evenly spaced bins.

    logits (b, bins), target (b,) -> (b,). Targets outside the bins are clipped and get no gradient.
    """

    @staticmethod
    def _place(target, lo, hi, bins):
        s = target.sign() * torch.log1p(target.abs())
        pos = (s.clamp(lo, hi) - lo) * ((bins - 1) / (hi - lo))
        left = pos.detach().floor().long().clamp(0, bins - 2)
        return s, pos, left

    @staticmethod
    def forward(ctx, logits, target, lo=-2.0, hi=2.0):
        s, pos, left = TwoHotSymlogLoss._place(target, lo, hi, logits.shape[1])
        logp = logits.log_softmax(1)
        frac = (pos - left).unsqueeze(1)
        a = logp.gather(1, left[:, None])
        b = logp.gather(1, left[:, None] + 1)
        ctx.save_for_backward(logits, target)
        ctx.lo, ctx.hi = lo, hi
        return -((1 - frac) * a + frac * b).squeeze(1)

    @staticmethod
    def backward(ctx, g):
        logits, target = ctx.saved_tensors
        bins = logits.shape[1]
        s, pos, left = TwoHotSymlogLoss._place(target, ctx.lo, ctx.hi, bins)
        left = left[:, None]
        frac = pos[:, None] - left
        code = torch.zeros_like(logits).scatter(1, left, 1 - frac).scatter(1, left + 1, frac)
        g_logits = g[:, None] * (logits.softmax(1) - code)
        inside = ((s > ctx.lo) & (s < ctx.hi)).to(g.dtype)
        gap = logits.gather(1, left) - logits.gather(1, left + 1)
        per_bin = (bins - 1) / (ctx.hi - ctx.lo)
        g_target = g * gap[:, 0] * per_bin * inside / (1 + target.abs())
        return g_logits, g_target, None, None
