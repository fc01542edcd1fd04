"""Forward-sum alignment loss for text to speech (Badlani et al., 2021), as a plain dynamic program."""
import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable

NEG = float("-inf")


def _shift(row, k):
    """Moves a row by k places, -inf enters."""
    out = torch.full_like(row, NEG)
    if k > 0:
        out[k:] = row[:-k]
    else:
        out[:k] = row[-k:]
    return out


class _ForwardSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, lp, text_len, mel_len):
        ll = lp.new_empty(lp.size(0))
        alphas = torch.full_like(lp, NEG)
        for b in range(lp.size(0)):
            t_len, n_len = int(mel_len[b]), int(text_len[b])
            alphas[b, 0, 0] = lp[b, 0, 0]
            for t in range(1, t_len):
                prev = alphas[b, t - 1]
                alphas[b, t] = lp[b, t] + torch.logaddexp(prev, _shift(prev, 1))
            ll[b] = alphas[b, t_len - 1, n_len - 1]
        ctx.save_for_backward(lp, text_len, mel_len, alphas, ll)
        return -ll

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        lp, text_len, mel_len, alphas, ll = ctx.saved_tensors
        g = torch.zeros_like(lp)
        for b in range(lp.size(0)):
            t_len, n_len = int(mel_len[b]), int(text_len[b])
            beta = torch.full_like(lp[b, 0], NEG)
            beta[n_len - 1] = 0.0
            for t in range(t_len - 1, -1, -1):
                g[b, t] = -grad[b] * torch.exp(alphas[b, t] + beta - ll[b])
                nxt = beta + lp[b, t]
                beta = torch.logaddexp(nxt, _shift(nxt, -1))
        return g, None, None


class ForwardSumLoss(nn.Module):
    """Mean negative log likelihood of all monotonic alignments, per token.

    forward(log_probs, text_len, mel_len)
        log_probs: (B, T, N), any finite scores; N >= 2
        text_len: (B,) integers, 1 <= text_len <= N
        mel_len: (B,) integers, text_len <= mel_len <= T
    """

    def forward(self, log_probs, text_len, mel_len):
        if bool((mel_len < text_len).any()):
            raise ValueError("fewer frames than tokens")
        nll = _ForwardSum.apply(log_probs, text_len, mel_len)
        return (nll / text_len.to(nll.dtype)).mean()
