import torch
import torch.nn as nn


class _PairTerm(torch.autograd.Function):
    """0.5 * sum_d ((sum_f e)^2 - sum_f e^2), e (B, F, D) -> (B,)"""

    @staticmethod
    def forward(ctx, e, scale):
        total = e.sum(1)
        ctx.save_for_backward(e)
        ctx.scale = scale
        return 0.5 * scale * (total.square() - e.square().sum(1)).sum(-1)

    @staticmethod
    def backward(ctx, g):
        e, = ctx.saved_tensors
        total = e.detach().sum(1, keepdim=True)
        return ctx.scale * g[:, None, None] * (total - e), None


class FactorizationMachine(nn.Module):
    def __init__(self, fields, vocab, dim, scale=None, bias=True):
        super().__init__()
        self.emb = nn.Parameter(torch.randn(fields, vocab, dim) * 0.1)
        self.lin = nn.Parameter(torch.zeros(fields, vocab))
        self.bias = nn.Parameter(torch.zeros(())) if bias else None
        self.scale = 1.0 if scale is None else scale

    def forward(self, ids, values=None):
        f = torch.arange(ids.size(1), device=ids.device)
        e, w = self.emb[f, ids], self.lin[f, ids]
        if values is not None:
            e, w = e * values.unsqueeze(-1), w * values
        y = w.sum(1) + _PairTerm.apply(e, self.scale)
        return y if self.bias is None else y + self.bias
