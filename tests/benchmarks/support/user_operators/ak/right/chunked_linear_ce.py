import torch
from torch.autograd.function import once_differentiable


class ChunkedLinearCE(torch.autograd.Function):
    """Cross entropy of hidden @ weight.T without the whole logits in memory.

    hidden: (N, D), weight: (V, D), target: (N,). Gradients are made during forward, chunk by chunk.
    """

    @staticmethod
    def forward(ctx, hidden, weight, target, ignore_index=-100, chunk=2):
        valid = target != ignore_index
        n = valid.sum().clamp(min=1)
        gh, gw = torch.empty_like(hidden), torch.zeros_like(weight)
        loss = hidden.new_zeros(())
        for at in range(0, hidden.shape[0], chunk):
            h, ok = hidden[at:at + chunk], valid[at:at + chunk, None]
            y = torch.where(ok, target[at:at + chunk, None], 0)
            logp = (h @ weight.t()).log_softmax(-1)
            loss -= (logp.gather(1, y) * ok).sum() / n
            d = (logp.exp() - torch.zeros_like(logp).scatter(1, y, 1.0)) * ok / n
            gh[at:at + chunk] = d @ weight
            gw += d.t() @ h
        ctx.save_for_backward(gh, gw)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        gh, gw = ctx.saved_tensors
        return gh * g, gw * g, None, None, None
