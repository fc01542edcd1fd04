import torch
from torch.autograd import Function


class RotatEScore(Function):
    # head (B, 2D), phases (R, D), rel (B,), tails (B, K, 2D) with K negatives; real parts first
    # -> margin - sum |head * exp(i phase) - tail|, (B, K)
    @staticmethod
    def difference(head, phases, rel, tails):
        hr, hi = head.chunk(2, -1)
        c, s = phases[rel].cos(), phases[rel].sin()
        rr, ri = hr * c - hi * s, hr * s + hi * c
        tr, ti = tails.chunk(2, -1)
        return c, s, rr, ri, rr[:, None] - tr, ri[:, None] - ti

    @staticmethod
    def forward(ctx, head, phases, rel, tails, margin=6.0, eps=1e-12):
        ctx.save_for_backward(head, phases, rel, tails)
        ctx.eps = eps
        *_, dr, di = RotatEScore.difference(head, phases, rel, tails)
        return margin - (dr * dr + di * di + eps).sqrt().sum(-1)

    @staticmethod
    def backward(ctx, grad):
        head, phases, rel, tails = ctx.saved_tensors
        c, s, rr, ri, dr, di = RotatEScore.difference(head, phases, rel, tails)
        grad.neg_()
        g = grad[..., None] / (dr * dr + di * di + ctx.eps).sqrt()
        gr, gi = g * dr, g * di
        g_tails = -torch.cat([gr, gi], -1)
        gr, gi = gr.sum(1), gi.sum(1)
        g_head = torch.cat([gr * c + gi * s, gi * c - gr * s], -1)
        g_phase = torch.zeros_like(phases).index_add(0, rel, gi * rr - gr * ri)
        return g_head, g_phase, None, g_tails, None, None
