"""Cross entropy of a linear head without keeping the logits; gradients are formed in forward."""
import torch
from torch.autograd.function import once_differentiable


class _FusedLinearCE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, weight, bias, target, ignore_index, smoothing, z_weight, chunk):
        n, vocab = hidden.size(0), weight.size(0)
        count = (target != ignore_index).sum().clamp(min=1).to(hidden.dtype)
        loss = hidden.new_zeros(())
        gh, gw = torch.zeros_like(hidden), torch.zeros_like(weight)
        gb = None if bias is None else torch.zeros_like(bias)
        for lo in range(0, n, chunk):
            h, y = hidden[lo:lo + chunk], target[lo:lo + chunk]
            logits = h @ weight.t()
            if bias is not None:
                logits = logits + bias
            keep = (y != ignore_index).to(h.dtype)[:, None]
            safe = y.clamp(min=0, max=vocab - 1)[:, None]
            lse = logits.logsumexp(1, keepdim=True)
            picked = (1 - smoothing) * logits.gather(1, safe) + smoothing * logits.mean(1, keepdim=True)
            loss = loss + ((lse - picked + z_weight * lse ** 2) * keep).sum()
            g = (logits - lse).exp() * (1 + 2 * z_weight * lse) - smoothing / vocab
            g.scatter_add_(1, safe, torch.full_like(lse, smoothing - 1))
            g = g * keep / count
            gh[lo:lo + chunk] = g @ weight
            gw = g.t() @ h
            if gb is not None:
                gb += g.sum(0)
        ctx.save_for_backward(gh, gw, gb)
        return loss / count

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        gh, gw, gb = ctx.saved_tensors
        return grad * gh, grad * gw, None if gb is None else grad * gb, None, None, None, None, None


def fused_linear_ce(hidden, weight, target, bias=None, ignore_index=-100, label_smoothing=0.0, z_weight=0.0, chunk_size=1024):
    """hidden (N, D), weight (V, D), target (N,), bias (V,) -> mean loss over counted tokens."""
    return _FusedLinearCE.apply(hidden, weight, bias, target, ignore_index, label_smoothing, z_weight, chunk_size)
