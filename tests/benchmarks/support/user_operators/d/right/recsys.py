"""Ranking and tabular layers."""
from typing import List, Optional

import torch
from torch.autograd.function import once_differentiable


class FMInteraction(torch.autograd.Function):
    """Second order factorisation machine term.

    x: (B, F) feature values, V: (F, K) factors -> (B,)
    """

    @staticmethod
    def forward(x, V):
        xv = x.unsqueeze(-1) * V
        return 0.5 * (xv.sum(1).pow(2) - xv.pow(2).sum(1)).sum(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, V = ctx.saved_tensors
        xv = x.unsqueeze(-1) * V
        inner = grad[:, None, None] * (xv.sum(1, keepdim=True) - xv)
        return (inner * V).sum(-1), (inner * x.unsqueeze(-1)).sum(0)


class CrossLayer(torch.autograd.Function):
    """DCN cross layer: x0 * (xl . w) + b + xl"""

    @staticmethod
    def forward(ctx, x0, xl, w, b):
        assert x0.shape == xl.shape
        proj = xl @ w
        ctx.save_for_backward(x0, xl, w)
        return x0 * proj.unsqueeze(-1) + b + xl

    @staticmethod
    def backward(ctx, g):
        x0, xl, w = ctx.saved_tensors
        t = (g * x0).sum(-1)
        d_x0 = g * (xl @ w).unsqueeze(-1)
        d_xl = t.unsqueeze(-1) * w + g
        d_w = xl.t() @ t
        return d_x0, d_xl, d_w, g.sum(0)


class HashedEmbeddingBag(torch.autograd.Function):
    """Sum of signed hashed rows of ``table`` (M, D) over ids (B, L), optionally weighted."""

    @staticmethod
    def _hash(ids, M):
        h = (ids * 2654435761 + 40503) % 4294967291
        sign = 1 - 2 * ((h // 7) % 2)
        return h % M, sign

    @staticmethod
    def forward(ctx, table, ids, weights=None):
        if ids.is_floating_point():
            raise TypeError("ids must be integers")
        slot, sign = HashedEmbeddingBag._hash(ids, table.shape[0])
        coef = sign.to(table.dtype)
        if weights is not None:
            coef = coef * weights
        ctx.weighted = weights is not None
        ctx.save_for_backward(table, slot, sign, coef)
        return (table[slot] * coef.unsqueeze(-1)).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        table, slot, sign, coef = ctx.saved_tensors
        per_item = coef.unsqueeze(-1) * grad.unsqueeze(1)
        g_table = torch.zeros_like(table)
        g_table.index_add_(0, slot.reshape(-1), per_item.reshape(-1, table.shape[1]))
        g_weights = None
        if ctx.weighted:
            g_weights = (table[slot] * grad.unsqueeze(1)).sum(-1) * sign
        return g_table, None, g_weights


class PiecewiseLinearBins(torch.autograd.Function):
    """Interpolate per-edge values at x; outside of the edges the end pieces go on.

    x: (N,), edges: (K,) ascending, values: (K,)
    """

    @staticmethod
    def _locate(x, edges):
        return torch.searchsorted(edges.detach(), x.detach()).clamp(1, edges.numel() - 1) - 1

    @staticmethod
    def forward(ctx, x, edges, values):
        assert edges.shape == values.shape and edges.dim() == 1
        ctx.save_for_backward(x, edges, values)
        i = PiecewiseLinearBins._locate(x, edges)
        t = (x - edges[i]) / (edges[i + 1] - edges[i])
        return values[i] + t * (values[i + 1] - values[i])

    @staticmethod
    def backward(ctx, grad):
        x, edges, values = ctx.saved_tensors
        i = PiecewiseLinearBins._locate(x, edges)
        width = edges[i + 1] - edges[i]
        t = (x - edges[i]) / width
        rise = values[i + 1] - values[i]
        gx = grad * rise / width
        ge = torch.zeros_like(edges)
        ge = ge.index_add(0, i, gx * (t - 1)).index_add(0, i + 1, -gx * t)
        gv = torch.zeros_like(values)
        gv = gv.index_add(0, i, grad * (1 - t)).index_add(0, i + 1, grad * t)
        return gx, ge, gv


class BPRLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pos_scores, neg_scores, margin=0.0, reduction="mean"):
        if pos_scores.shape != neg_scores.shape:
            raise ValueError("positives and negatives come in pairs")
        ctx.save_for_backward(pos_scores, neg_scores)
        ctx.margin = margin
        ctx.n = pos_scores.numel() if reduction == "mean" else 1
        loss = torch.nn.functional.softplus(margin - (pos_scores - neg_scores))
        return loss if reduction == "none" else loss.sum() / ctx.n

    @staticmethod
    def backward(ctx, grad_output):
        pos, neg = ctx.saved_tensors
        s = torch.sigmoid(ctx.margin - (pos - neg))
        g = grad_output * s / ctx.n
        return -g, g, None, None


class TweedieLoss(torch.autograd.Function):
    """Tweedie negative log likelihood (1 < rho < 2) on the log of the mean."""

    @staticmethod
    def forward(ctx, log_mu, y, rho: float = 1.5):
        if not 1.0 < rho < 2.0:
            raise ValueError("rho must be in (1, 2)")
        ctx.save_for_backward(log_mu, y)
        ctx.rho = rho
        a = y * torch.exp((1.0 - rho) * log_mu) / (1.0 - rho)
        b = torch.exp((2.0 - rho) * log_mu) / (2.0 - rho)
        return (b - a).mean()

    @staticmethod
    def backward(ctx, grad_output):
        log_mu, y = ctx.saved_tensors
        rho = ctx.rho
        e1 = torch.exp((1.0 - rho) * log_mu)
        e2 = torch.exp((2.0 - rho) * log_mu)
        g = grad_output / log_mu.numel()
        return g * (e2 - y * e1), g * e1 / (rho - 1.0), None


class RaggedSoftmax(torch.autograd.Function):
    """Softmax within each of the consecutive groups of a flat score vector."""

    @staticmethod
    def forward(ctx, scores, sizes: List[int]):
        if sum(sizes) != scores.numel():
            raise ValueError("sizes do not add up to the number of scores")
        p = torch.cat([part.softmax(0) for part in scores.split(sizes)])
        ctx.sizes = list(sizes)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, grad):
        p, = ctx.saved_tensors
        out = []
        for gi, pi in zip(grad.split(ctx.sizes), p.split(ctx.sizes)):
            out.append(pi * (gi - (gi * pi).sum()))
        return torch.cat(out), None


class RatingMSE(torch.autograd.Function):
    """Squared error on the observed entries of a rating matrix."""

    @staticmethod
    def forward(ctx, pred, rating, observed, reduction: str = "mean"):
        assert observed.dtype == torch.bool
        diff = (pred - rating).masked_fill(~observed, 0.0)
        n = observed.sum().clamp(min=1) if reduction == "mean" else 1
        ctx.save_for_backward(pred, rating, observed)
        ctx.n = n
        return diff.pow(2).sum() / n

    @staticmethod
    def backward(ctx, grad):
        pred, rating, observed = ctx.saved_tensors
        diff = (pred - rating).masked_fill(~observed, 0.0)
        g = 2 * grad * diff / ctx.n
        return g, -g, None, None


class TopKScores(torch.autograd.Function):
    """Scores of the k best of the candidates items (B, N, D) for user (B, D)."""

    @staticmethod
    def forward(ctx, user, items, k):
        scores = torch.einsum("bd,bnd->bn", user, items)
        vals, idx = scores.topk(k, dim=1)
        ctx.save_for_backward(user, items, idx)
        ctx.mark_non_differentiable(idx)
        return vals, idx

    @staticmethod
    def backward(ctx, g_vals, _):
        user, items, idx = ctx.saved_tensors
        s = g_vals.new_zeros(items.shape[:2]).scatter(1, idx, g_vals)
        g_user = torch.einsum("bn,bnd->bd", s, items)
        g_items = s.unsqueeze(-1) * user.unsqueeze(1)
        return g_user, g_items, None


class RecencyDecay(torch.autograd.Function):
    """scores * 0.5 ** (age / half_life); ts are unix seconds (int64), half_life a 0-d tensor."""

    @staticmethod
    def forward(ctx, scores, ts, half_life, now: int):
        ctx.save_for_backward(scores, ts, half_life)
        ctx.now = now
        age = (now - ts).to(scores.dtype)
        return scores * torch.exp2(-age / half_life)

    @staticmethod
    def backward(ctx, grad):
        scores, ts, half_life = ctx.saved_tensors
        age = (ctx.now - ts).to(scores.dtype)
        decay = torch.exp2(-age / half_life)
        ln2 = 0.6931471805599453
        g_half = (grad * scores * decay * ln2 * age).sum() / half_life ** 2
        return grad * decay, None, g_half, None
