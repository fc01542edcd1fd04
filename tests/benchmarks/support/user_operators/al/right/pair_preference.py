"""Reference-free preference loss with length-normalised rewards."""
import torch
import torch.nn.functional as F


def _mean_logp(logits, ids, length):
    logp = logits.log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    mask = torch.arange(ids.shape[1], device=ids.device) < length.unsqueeze(1)
    return (logp * mask).sum(1) / length, mask


def _spread(g, logits, ids, length, mask):
    """Gradient of the mean log probability, g (B,) coming in."""
    g = (g / length).unsqueeze(1) * mask
    d = -logits.softmax(-1) * g.unsqueeze(-1)
    return d.scatter_add(-1, ids.unsqueeze(-1), g.unsqueeze(-1))


class _PairPreference(torch.autograd.Function):
    @staticmethod
    def forward(ctx, good, bad, good_ids, bad_ids, good_len, bad_len, beta, margin):
        ctx.save_for_backward(good, bad, good_ids, bad_ids, good_len, bad_len)
        ctx.hyper = (beta, margin)
        gap = _mean_logp(good, good_ids, good_len)[0] - _mean_logp(bad, bad_ids, bad_len)[0]
        return F.softplus(margin - beta * gap).mean(), gap > 0

    @staticmethod
    def backward(ctx, grad, _):
        good, bad, good_ids, bad_ids, good_len, bad_len = ctx.saved_tensors
        beta, margin = ctx.hyper
        logp_good, mask_good = _mean_logp(good, good_ids, good_len)
        logp_bad, mask_bad = _mean_logp(bad, bad_ids, bad_len)
        slope = torch.sigmoid(margin - beta * (logp_good - logp_bad))
        g = -grad * beta * slope / len(good)
        d_good = _spread(g, good, good_ids, good_len, mask_good)
        d_bad = _spread(-g, bad, bad_ids, bad_len, mask_bad)
        return d_good, d_bad, None, None, None, None, None, None


def pair_preference(good, bad, good_ids, bad_ids, good_len, bad_len, beta=2.0, margin=0.5):
    """Logits (B, T, V), token ids (B, T), lengths (B,) of at least one token.

    Returns the loss and which pairs are ranked correctly (B,) bool.
    """
    return _PairPreference.apply(good, bad, good_ids, bad_ids, good_len, bad_len, beta, margin)
