import torch
import torch.nn.functional as F


class CrossEntropyZLoss(torch.autograd.Function):
    """Cross entropy with label smoothing and the z-loss on log-partition values.

    logits: (N, V); labels: (N,); rows with ``ignore_index`` do not count.
    Returns the total loss and, for logging only, its z-loss part.
    """

    @staticmethod
    def forward(ctx, logits, labels, smoothing=0.0, lse_square_scale=0.0, ignore_index=-100):
        if logits.is_complex():
            raise TypeError("complex inputs are not supported")
        keep = labels != ignore_index
        n = max(int(keep.sum()), 1)
        safe = labels.masked_fill(~keep, 0)
        lse = torch.logsumexp(logits, -1)
        picked = logits.gather(1, safe[:, None]).squeeze(1)
        nll = lse - (1 - smoothing) * picked - smoothing * logits.mean(-1)
        z = lse_square_scale * lse ** 2
        z_loss = z.masked_fill(~keep, 0).sum() / n
        loss = nll.masked_fill(~keep, 0).sum() / n + z_loss
        ctx.save_for_backward(logits, safe, keep)
        ctx.n, ctx.smoothing, ctx.lse_square_scale = n, smoothing, lse_square_scale
        ctx.mark_non_differentiable(z_loss)
        return loss, z_loss

    @staticmethod
    def backward(ctx, grad_loss, _grad_z):
        logits, safe, keep = ctx.saved_tensors
        lse = torch.logsumexp(logits, -1, keepdim=True)
        probs = torch.exp(logits - lse)
        grad = probs + ctx.lse_square_scale * lse * probs
        grad = grad - (1 - ctx.smoothing) * F.one_hot(safe, logits.shape[1]).to(grad.dtype)
        grad = grad - ctx.smoothing / logits.shape[1]
        grad = grad.masked_fill(~keep[:, None], 0) * (grad_loss / ctx.n)
        return grad, None, None, None, None
