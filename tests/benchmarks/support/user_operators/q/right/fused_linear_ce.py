import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class FusedLinearCrossEntropy(torch.autograd.Function):
    """
    Cross entropy of a linear head without keeping all logits: the rows are taken in chunks and the
    gradients are computed in forward already.

    hidden : (N, D)
    weight : (V, D)
    target : (N,) int64, `ignore_index` rows do not count
    """

    @staticmethod
    def forward(ctx, hidden, weight, target, chunk_size=2, ignore_index=-100):
        n_valid = (target != ignore_index).sum().clamp(min=1)
        g_hidden = torch.zeros_like(hidden)
        g_weight = torch.zeros_like(weight)
        loss = hidden.new_zeros(())
        for start in range(0, hidden.shape[0], chunk_size):
            rows = slice(start, start + chunk_size)
            h, t = hidden[rows], target[rows]
            keep = t != ignore_index
            t = torch.where(keep, t, torch.zeros_like(t))
            logp = F.log_softmax(h @ weight.t(), -1)
            loss = loss - (logp.gather(1, t[:, None])[:, 0] * keep).sum()
            p = logp.exp()
            p[torch.arange(len(t)), t] -= 1
            p = p * keep[:, None] / n_valid
            g_hidden[rows] = p @ weight
            g_weight += p.t() @ h
        ctx.save_for_backward(g_hidden, g_weight)
        return loss / n_valid

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        g_hidden, g_weight = ctx.saved_tensors
        return g_hidden * grad_output, g_weight * grad_output, None, None, None
