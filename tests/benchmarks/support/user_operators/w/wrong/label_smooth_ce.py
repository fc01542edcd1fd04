import torch


class LSCrossEntropy(torch.autograd.Function):
    """
    Cross entropy with label smoothing.

    logits: (N, C), labels: (N,) int64, entries equal to ``ignore_index`` do not count.
    Returns the mean over the labels that count.
    """

    @staticmethod
    def forward(ctx, logits, labels, smoothing, ignore_index):
        logp = logits.log_softmax(-1)
        valid = labels != ignore_index
        safe = labels.masked_fill(~valid, 0)
        nll = -logp.gather(1, safe[:, None]).squeeze(1)
        smooth = -logp.mean(-1)
        loss = (1 - smoothing) * nll + smoothing * smooth
        n = valid.sum().clamp(min=1)
        ctx.save_for_backward(logits, safe, valid)
        ctx.smoothing = smoothing
        return (loss * valid).sum() / n

    @staticmethod
    def backward(ctx, dloss):
        logits, safe, valid = ctx.saved_tensors
        C = logits.shape[1]
        target = torch.full_like(logits, ctx.smoothing / C)
        target.scatter_add_(1, safe[:, None], torch.full_like(logits[:, :1], 1 - ctx.smoothing))
        d = (logits.softmax(-1) - target) * valid[:, None]
        return d * (dloss / logits.shape[0]), None, None, None
