import torch


class _SeqLogprob(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels, live, average):
        tok = logits.log_softmax(-1).gather(-1, labels.masked_fill(~live, 0).unsqueeze(-1)).squeeze(-1)
        out = (tok * live).sum(-1)
        if average:
            out = out / live.sum(-1).clamp(min=1)
        ctx.save_for_backward(logits, labels, live)
        ctx.average = average
        return out

    @staticmethod
    def backward(ctx, g):
        logits, labels, live = ctx.saved_tensors
        if ctx.average:
            g = g / live.sum(-1).clamp(min=1)
        labels = labels.masked_fill(~live, 0)
        hot = torch.nn.functional.one_hot(labels, logits.size(-1)).to(logits.dtype)
        d = (hot - logits.softmax(-1)) * live.unsqueeze(-1)
        return d * g[..., None, None], None, None, None


def sequence_logprob(logits, labels, loss_mask=None, average=False, shift=True):
    """Log probability of each sequence.

    logits: [batch, time, vocab]; labels: [batch, time], anything where loss_mask is False.
    With shift=True position t predicts label t + 1. average=True divides by the number of
    counted tokens.
    """
    if loss_mask is None:
        loss_mask = torch.ones_like(labels, dtype=torch.bool)
    if shift:
        logits, labels, loss_mask = logits[:, :-1], labels[:, 1:], loss_mask[:, 1:]
    return _SeqLogprob.apply(logits, labels, loss_mask, average)
