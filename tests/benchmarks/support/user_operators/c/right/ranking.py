import numpy as np
import torch
from torch.autograd.function import once_differentiable


class TopKMean(torch.autograd.Function):
    """Mean of the k largest entries along dim."""

    @staticmethod
    def forward(ctx, x, k, dim=-1):
        if not 0 < k <= x.shape[dim]:
            raise ValueError("k out of range")
        vals, idx = x.topk(k, dim=dim)
        ctx.save_for_backward(idx)
        ctx.k, ctx.dim, ctx.shape = k, dim, x.shape
        return vals.mean(dim)

    @staticmethod
    def backward(ctx, g):
        (idx,) = ctx.saved_tensors
        share = (g / ctx.k).unsqueeze(ctx.dim).expand_as(idx)
        return g.new_zeros(ctx.shape).scatter(ctx.dim, idx, share), None, None


class SoftRank(torch.autograd.Function):
    """Smooth ascending ranks: 0.5 + sum_j sigmoid((x_i - x_j) / tau)."""

    @staticmethod
    def forward(ctx, x, tau=1.0):
        ctx.save_for_backward(x)
        ctx.tau = tau
        diff = (x.unsqueeze(-1) - x.unsqueeze(-2)) / tau
        return 0.5 + torch.sigmoid(diff).sum(-1)

    @staticmethod
    def backward(ctx, grad_rank):
        (x,) = ctx.saved_tensors
        diff = (x.unsqueeze(-1) - x.unsqueeze(-2)) / ctx.tau
        p = torch.sigmoid(diff)
        slope = p * (1 - p) / ctx.tau
        dg = grad_rank.unsqueeze(-1) - grad_rank.unsqueeze(-2)
        return (slope * dg).sum(-1), None


def soft_rank(x, tau=1.0):
    return SoftRank.apply(x, tau)


class SortRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, descending=False):
        values, perm = torch.sort(x, dim=-1, descending=descending)
        ctx.mark_non_differentiable(perm)
        ctx.save_for_backward(perm)
        return values, perm

    @staticmethod
    def backward(ctx, g_values, g_perm):
        (perm,) = ctx.saved_tensors
        return torch.zeros_like(g_values).scatter(-1, perm, g_values), None


class SinkhornCost(torch.autograd.Function):
    """Entropic transport cost between weights a (n,) and b (m,), differentiated in the cost.

    By the envelope theorem the derivative is the transport plan, so the
    iterations need not be unrolled. a and b count as constants.
    """

    @staticmethod
    def forward(ctx, cost, a, b, eps=0.5, n_iter=500):
        assert cost.shape == (a.numel(), b.numel())
        if abs(float(a.sum() - b.sum())) > 1e-6:
            raise ValueError("a and b must have the same mass")
        if (a <= 0).any() or (b <= 0).any():
            raise ValueError("weights must be positive")
        if any(ctx.needs_input_grad[1:3]):
            raise NotImplementedError("no gradient with respect to a and b")
        log_a, log_b = a.log(), b.log()
        f, g = torch.zeros_like(a), torch.zeros_like(b)
        for _ in range(n_iter):
            f = eps * (log_a - torch.logsumexp((g[None, :] - cost) / eps, dim=1))
            g = eps * (log_b - torch.logsumexp((f[:, None] - cost) / eps, dim=0))
        plan = torch.exp((f[:, None] + g[None, :] - cost) / eps)
        ctx.save_for_backward(plan)
        return (a * f).sum() + (b * g).sum() - eps * plan.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (plan,) = ctx.saved_tensors
        return grad * plan, None, None, None, None


class Wasserstein1D(torch.autograd.Function):
    """mean |sort(x) - sort(y)|^p over the last axis, for equally many samples."""

    @staticmethod
    def forward(ctx, x, y, p=2.0):
        if x.shape != y.shape:
            raise ValueError("x and y need the same shape")
        if p < 1:
            raise ValueError("p must be at least 1")
        ix, iy = x.argsort(-1), y.argsort(-1)
        ctx.save_for_backward(x, y, ix, iy)
        ctx.p = p
        return (x.gather(-1, ix) - y.gather(-1, iy)).abs().pow(p).mean(-1)

    @staticmethod
    def backward(ctx, g):
        x, y, ix, iy = ctx.saved_tensors
        d = x.gather(-1, ix) - y.gather(-1, iy)
        gd = ctx.p * d.abs().pow(ctx.p - 1) * d.sign() / d.shape[-1]
        gd = gd * g.unsqueeze(-1)
        gx = torch.zeros_like(x).scatter(-1, ix, gd)
        gy = torch.zeros_like(y).scatter(-1, iy, -gd)
        return gx, gy, None


def _hide(t, mask):
    return t if mask is None else t.masked_fill(~mask, -1e9)


class ListNetLoss(torch.autograd.Function):
    """Cross entropy of the two top-one distributions, mean over lists.

    scores, relevance: (B, N); mask: (B, N) bool, True where there is a document.
    """

    @staticmethod
    def forward(ctx, scores, relevance, mask=None):
        assert scores.dim() == 2 and relevance.shape == scores.shape
        want = torch.softmax(_hide(relevance, mask), dim=-1)
        ctx.save_for_backward(scores, relevance, mask)
        logp = torch.log_softmax(_hide(scores, mask), dim=-1)
        return -(want * logp).sum(-1).mean()

    @staticmethod
    def backward(ctx, g):
        scores, relevance, mask = ctx.saved_tensors
        want = torch.softmax(_hide(relevance, mask), dim=-1)
        g = g / scores.size(0)
        p = torch.softmax(_hide(scores, mask), dim=-1)
        g_rel = None
        if ctx.needs_input_grad[1]:
            logp = torch.log_softmax(_hide(scores, mask), dim=-1)
            g_rel = g * want * ((want * logp).sum(-1, keepdim=True) - logp)
        return g * (p - want), g_rel, None


class PairHinge(torch.autograd.Function):
    """Mean of max(0, margin - (s_i - s_j)) over the pairs with label_i > label_j."""

    @staticmethod
    def forward(ctx, scores, labels, margin=1.0):
        assert scores.dim() == 1 and labels.shape == scores.shape
        pairs = labels[:, None] > labels[None, :]
        gap = scores[:, None] - scores[None, :]
        n = pairs.sum().clamp(min=1)
        active = pairs & (gap < margin)
        ctx.save_for_backward(active, n)
        return ((margin - gap).clamp(min=0) * pairs).sum() / n

    @staticmethod
    def backward(ctx, grad_output):
        active, n = ctx.saved_tensors
        a = active.to(grad_output.dtype)
        return grad_output * (a.sum(0) - a.sum(1)) / n, None, None


class PlackettLuceNLL(torch.autograd.Function):
    """Negative log-likelihood of an observed order; ranking lists the items, best first."""

    @staticmethod
    def forward(ctx, scores, ranking):
        if sorted(ranking.tolist()) != list(range(scores.numel())):
            raise ValueError("ranking must be a permutation of the items")
        s = scores[ranking]
        lse = s.flip(0).logcumsumexp(0).flip(0)
        ctx.save_for_backward(scores, ranking)
        return (lse - s).sum()

    @staticmethod
    def backward(ctx, g):
        scores, ranking = ctx.saved_tensors
        s = scores[ranking]
        lse = s.flip(0).logcumsumexp(0).flip(0)
        p = torch.exp(s.unsqueeze(0) - lse.unsqueeze(1)).triu()
        gs = p.sum(0) - 1
        return torch.zeros_like(scores).index_put((ranking,), g * gs), None


class Sparsemax(torch.autograd.Function):
    """Euclidean projection onto the simplex along dim."""

    @staticmethod
    def forward(ctx, logits, dim=-1):
        z, _ = logits.sort(dim=dim, descending=True)
        csum = z.cumsum(dim) - 1
        view = [1] * logits.dim()
        view[dim] = -1
        steps = torch.arange(1, logits.size(dim) + 1, device=logits.device).view(view)
        k = (steps * z > csum).sum(dim, keepdim=True)
        tau = csum.gather(dim, k - 1) / k
        out = (logits - tau).clamp(min=0)
        ctx.save_for_backward(out)
        ctx.dim = dim
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        keep = out > 0
        g = g * keep
        shift = g.sum(ctx.dim, keepdim=True) / keep.sum(ctx.dim, keepdim=True)
        return (g - shift) * keep, None


def sparsemax(logits, dim=-1):
    return Sparsemax.apply(logits, dim)


class IsotonicFit(torch.autograd.Function):
    """Least-squares non-decreasing fit to each row of y (pool adjacent violators, in numpy)."""

    @staticmethod
    def forward(ctx, y):
        fit = np.empty(tuple(y.shape), dtype=np.float64)
        for row, values in enumerate(y.detach().cpu().double().numpy()):
            blocks = []
            for v in values:
                blocks.append([v, 1])
                while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
                    m2, n2 = blocks.pop()
                    m1, n1 = blocks.pop()
                    blocks.append([(m1 * n1 + m2 * n2) / (n1 + n2), n1 + n2])
            fit[row] = np.concatenate([np.full(n, m) for m, n in blocks])
        ctx.fit = fit
        return torch.from_numpy(fit.copy()).to(y)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        out = np.empty_like(ctx.fit)
        for row, values in enumerate(g.cpu().double().numpy()):
            cuts = np.flatnonzero(np.diff(ctx.fit[row])) + 1
            for part, chunk in zip(np.split(out[row], cuts), np.split(values, cuts)):
                part[:] = chunk.mean()
        return torch.from_numpy(out).to(g)
