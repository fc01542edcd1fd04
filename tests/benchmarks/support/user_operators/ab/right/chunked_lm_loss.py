import torch
from torch.autograd.function import once_differentiable


class ChunkedLinearCrossEntropy(torch.autograd.Function):
    """Mean cross entropy of ``hidden @ weight.T + bias`` without ever holding all the logits.

    The gradients are made in the forward pass, a chunk of rows at a time, and scaled in backward.
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, target, chunk=1024, ignore_index=-100):
        n = hidden.shape[0]
        n_valid = (target != ignore_index).sum().clamp(min=1)
        loss = hidden.new_zeros(())
        d_hidden = torch.zeros_like(hidden)
        d_weight = torch.zeros_like(weight)
        d_bias = None if bias is None else torch.zeros_like(bias)
        for start in range(0, n, chunk):
            rows = slice(start, start + chunk)
            h, t = hidden[rows], target[rows]
            valid = t != ignore_index
            logits = h @ weight.t()
            if bias is not None:
                logits = logits + bias
            logp = logits.log_softmax(-1)
            t = t.masked_fill(~valid, 0)
            loss -= (logp.gather(1, t[:, None])[:, 0] * valid).sum() / n_valid
            d_logits = logp.exp()
            d_logits[torch.arange(len(t), device=t.device), t] -= 1
            d_logits *= valid[:, None] / n_valid
            d_hidden[rows] = d_logits @ weight
            d_weight += d_logits.t() @ h
            if bias is not None:
                d_bias += d_logits.sum(0)
        ctx.save_for_backward(d_hidden, d_weight, d_bias)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        d_hidden, d_weight, d_bias = ctx.saved_tensors
        return g * d_hidden, g * d_weight, None if d_bias is None else g * d_bias, None, None, None
