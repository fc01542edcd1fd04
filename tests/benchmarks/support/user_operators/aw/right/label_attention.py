import torch
from torch import nn


class _Attend(torch.autograd.Function):
    @staticmethod
    def weights(h, u, pad):
        s = torch.einsum("ld,btd->blt", u, h).masked_fill(pad[:, None], float("-inf"))
        return s.softmax(-1)

    @staticmethod
    def forward(ctx, h, u, pad, owner):
        ctx.save_for_backward(h, u, pad)
        owner.attn = _Attend.weights(h, u, pad).detach()
        return owner.attn @ h

    @staticmethod
    def backward(ctx, gm):
        h, u, pad = ctx.saved_tensors
        alpha = _Attend.weights(h, u, pad)
        ga = gm @ h.transpose(1, 2)
        gs = alpha * (ga - (alpha * ga).sum(-1, keepdim=True))
        gh = alpha.transpose(1, 2) @ gm + torch.einsum("blt,ld->btd", gs, u)
        return gh, torch.einsum("blt,btd->ld", gs, h), None, None


class LabelAttention(nn.Module):
    """CAML output layer: one attention per label.

    h (B, T, dim), pad (B, T) bool, True where padded (never a whole row) -> logits (B, labels).
    The weights of the last call are in ``attn`` for plots.
    """

    def __init__(self, dim, labels):
        super().__init__()
        self.query = nn.Parameter(torch.empty(labels, dim))
        self.out = nn.Parameter(torch.empty(labels, dim))
        self.bias = nn.Parameter(torch.zeros(labels))
        self.attn = None
        nn.init.xavier_uniform_(self.query)
        nn.init.xavier_uniform_(self.out)

    def forward(self, h, pad):
        m = _Attend.apply(h, self.query, pad, self)
        return (m * self.out).sum(-1) + self.bias
