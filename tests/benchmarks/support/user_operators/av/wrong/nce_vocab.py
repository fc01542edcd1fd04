import torch
import torch.nn.functional as F
from torch import Tensor


class _NCE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, weight, bias, target, noise, logq):
        ctx.save_for_backward(h, weight, bias, target, noise, logq)
        pos, neg = _NCE._logits(h, weight, bias, target, noise, logq)
        return -(F.logsigmoid(pos).sum() + F.logsigmoid(-neg).sum()) / h.size(0)

    @staticmethod
    def _logits(h, weight, bias, target, noise, logq):
        shift = logq + torch.log(torch.tensor(float(noise.numel()), dtype=logq.dtype))
        off = -shift if bias is None else bias - shift
        pos = (h * weight[target]).sum(-1) + off[target]
        neg = h @ weight[noise].T + off[noise]
        return pos, neg

    @staticmethod
    def backward(ctx, g):
        h, weight, bias, target, noise, logq = ctx.saved_tensors
        pos, neg = _NCE._logits(h, weight, bias, target, noise, logq)
        g = g / h.size(0)
        dpos = -g * torch.sigmoid(-pos)
        dneg = g * torch.sigmoid(neg)
        dh = dpos.unsqueeze(-1) * weight[target] + dneg @ weight[noise]
        dw = torch.zeros_like(weight).index_add(0, target, dpos.unsqueeze(-1) * h)
        dw = dw.index_add(0, noise, dneg.T @ h)
        off = torch.zeros_like(logq).index_add(0, noise, dneg.sum(0))
        return dh, dw, None if bias is None else off, None, None, -off if ctx.needs_input_grad[5] else None


def nce_vocab(h: Tensor, weight: Tensor, target: Tensor, noise: Tensor, logq: Tensor, bias: Tensor | None = None) -> Tensor:
    """Noise-contrastive loss with one shared noise sample, mean over rows.

    h (T, D), weight (V, D), target (T,), noise (K,) drawn with repetition from exp(logq), logq (V,), bias (V,)
    """
    return _NCE.apply(h, weight, bias, target, noise, logq)
