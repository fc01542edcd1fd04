import torch
import torch.nn.functional as F


class PlackettLuceTopK(torch.autograd.Function):
    """-log P(observed top of the ranking), one value per list.

    scores (B, N); order (B, K) indices of the ranked items, best first;
    depth (B,) how many places of ``order`` count; mask (B, N) bool, True for real items.
    """

    @staticmethod
    def _parts(scores, order, depth, mask):
        pick = F.one_hot(order, scores.shape[1])
        taken = pick.cumsum(1) - pick
        open_ = taken == 0
        if mask is not None:
            open_ = open_ & mask[:, None]
        step = torch.arange(order.shape[1], device=order.device)[None] < depth[:, None]
        # steps that do not count see everything, so nothing is empty
        open_ = open_ | ~step[..., None]
        return pick, scores[:, None].masked_fill(~open_, -torch.inf), step

    @staticmethod
    def forward(ctx, scores, order, depth, mask=None):
        ctx.save_for_backward(scores, order, depth, mask)
        _, left, step = PlackettLuceTopK._parts(scores, order, depth, mask)
        nll = left.logsumexp(-1) - scores.gather(1, order)
        return (nll * step).sum(1)

    @staticmethod
    def backward(ctx, g):
        scores, order, depth, mask = ctx.saved_tensors
        pick, left, step = PlackettLuceTopK._parts(scores, order, depth, mask)
        d = (left.softmax(-1) - pick) * step[..., None]
        return g[:, None] * d.sum(1), None, None, None
