"""Scans, recurrences and length-aware sequence ops."""
import torch
import torch.nn as nn
from torch.autograd.function import Function, once_differentiable


class LinearRecurrence(Function):
    """h_t = a_t * h_{t-1} + b_t over dim 1; a, b: (B, T, D), h0: (B, D) or None."""

    @staticmethod
    def forward(ctx, a, b, h0=None):
        h = torch.zeros_like(b[:, 0]) if h0 is None else h0
        hs = []
        for t in range(b.size(1)):
            h = a[:, t] * h + b[:, t]
            hs.append(h)
        out = torch.stack(hs, dim=1)
        ctx.save_for_backward(a, h0, out)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        a, h0, out = ctx.saved_tensors
        first = torch.zeros_like(out[:, 0]) if h0 is None else h0
        prev = torch.cat([first.unsqueeze(1), out[:, :-1]], dim=1)
        acc, steps = torch.zeros_like(first), []
        for t in reversed(range(a.size(1))):
            acc = acc + grad_out[:, t]
            steps.append(acc)
            acc = acc * a[:, t]
        grad_b = torch.stack(steps[::-1], dim=1)
        return grad_b * prev, grad_b, None if h0 is None else acc


class CumProd(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.cumprod(x, dim=-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        n = x.size(-1)
        grads, acc = [None] * n, torch.zeros_like(x[..., 0])
        for t in range(n - 1, -1, -1):
            acc = acc + g[..., t]
            before = y[..., t - 1] if t > 0 else torch.ones_like(acc)
            grads[t] = before * acc
            acc = acc * x[..., t]
        return torch.stack(grads, dim=-1)


class LogCumSumExp(Function):
    """Running logsumexp along the last axis."""

    @staticmethod
    def forward(ctx, x):
        y = torch.logcumsumexp(x, dim=-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        n = x.size(-1)
        seen = torch.ones(n, n, dtype=torch.bool, device=x.device).triu()
        diff = x.unsqueeze(-1) - y.unsqueeze(-2)
        w = diff.masked_fill(~seen, float("-inf")).exp()
        return (w * g.unsqueeze(-2)).sum(-1)


class SegmentSoftmax(Function):
    """Softmax of edge scores (E,) or (E, H) within the groups given by seg (E,)."""

    @staticmethod
    def forward(ctx, scores, seg, num_segments=None):
        n = int(seg.max()) + 1 if num_segments is None else num_segments
        shape = (n,) + tuple(scores.shape[1:])
        top = scores.new_full(shape, float("-inf")).index_reduce_(0, seg, scores, "amax")
        e = torch.exp(scores - top[seg])
        denom = scores.new_zeros(shape).index_add_(0, seg, e)
        out = e / denom[seg]
        ctx.save_for_backward(out, seg)
        ctx.shape = shape
        return out

    @staticmethod
    def backward(ctx, grad):
        out, seg = ctx.saved_tensors
        gy = grad * out
        tot = gy.new_zeros(ctx.shape).index_put((seg,), gy, accumulate=True)
        return gy - out * tot[seg], None, None


class SequenceCE(Function):
    """Cross entropy of logits (B, T, C) against target (B, T), first lengths[b] steps only."""

    @staticmethod
    def forward(ctx, logits, target, lengths, reduction="mean"):
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(reduction)
        steps = torch.arange(logits.size(1), device=logits.device)
        valid = (steps[None, :] < lengths[:, None]).to(logits.dtype)
        ctx.save_for_backward(logits, target, valid)
        ctx.reduction = reduction
        nll = torch.logsumexp(logits, -1) - logits.gather(-1, target.unsqueeze(-1)).squeeze(-1)
        nll = nll * valid
        if reduction == "none":
            return nll
        return nll.sum() / valid.sum() if reduction == "mean" else nll.sum()

    @staticmethod
    def backward(ctx, g):
        logits, target, valid = ctx.saved_tensors
        p = torch.softmax(logits, dim=-1)
        delta = p - torch.zeros_like(p).scatter(-1, target.unsqueeze(-1), 1.0)
        if ctx.reduction == "mean":
            g = g / valid.sum()
        return delta * (g * valid).unsqueeze(-1), None, None, None


def _reverse_index(lengths, total):
    t = torch.arange(total, device=lengths.device).unsqueeze(0)
    n = lengths.unsqueeze(1)
    return torch.where(t < n, n - 1 - t, t)


class ReverseByLength(Function):
    """Reverses x (B, T, D) in time inside each sequence, padding stays where it is."""

    @staticmethod
    def forward(ctx, x, lengths):
        assert x.size(0) == lengths.numel()
        assert int(lengths.max()) <= x.size(1)
        idx = _reverse_index(lengths, x.size(1)).unsqueeze(-1).expand_as(x)
        ctx.save_for_backward(idx)
        return x.gather(1, idx)

    @staticmethod
    def backward(ctx, g):
        (idx,) = ctx.saved_tensors
        return g.gather(1, idx), None


class _EMAScan(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        s = x[:, 0]
        out = [s]
        for t in range(1, x.size(1)):
            s = s + alpha * (x[:, t] - s)
            out.append(s)
        out = torch.stack(out, 1)
        ctx.save_for_backward(x, alpha, out)
        return out

    @staticmethod
    def backward(ctx, g):
        x, alpha, out = ctx.saved_tensors
        carry = torch.zeros_like(x[:, 0])
        g_alpha = torch.zeros_like(alpha)
        gx = []
        for t in range(x.size(1) - 1, 0, -1):
            carry = carry + g[:, t]
            gx.append(alpha * carry)
            g_alpha = g_alpha + (carry * (x[:, t] - out[:, t - 1])).sum(0)
            carry = carry * (1 - alpha)
        gx.append(g[:, 0] + carry)
        return torch.stack(gx[::-1], 1), g_alpha


class EMAFilter(nn.Module):
    """Exponential smoothing of (B, T, C), one trainable rate a channel, started at x[:, 0]."""

    def __init__(self, channels, init=0.0):
        super().__init__()
        self.logit = nn.Parameter(torch.full((channels,), float(init)))

    def forward(self, x):
        return _EMAScan.apply(x, torch.sigmoid(self.logit))


class LSTMPointwise(Function):
    """Gate arithmetic of an LSTM cell. gates: (B, 4H) in the order i, f, g, o; c: (B, H)."""

    @staticmethod
    def forward(ctx, gates, c):
        i, f, g, o = gates.chunk(4, dim=1)
        i, f, o, g = i.sigmoid(), f.sigmoid(), o.sigmoid(), g.tanh()
        c_new = f * c + i * g
        ctx.save_for_backward(i, f, g, o, c, c_new)
        return o * c_new.tanh(), c_new

    @staticmethod
    def backward(ctx, dh, dc):
        i, f, g, o, c, c_new = ctx.saved_tensors
        tc = c_new.tanh()
        dcell = dc + dh * o * (1 - tc * tc)
        d_i = dcell * g * i * (1 - i)
        d_f = dcell * c * f * (1 - f)
        d_g = dcell * i * (1 - g * g)
        d_o = dh * tc * o * (1 - o)
        return torch.cat([d_i, d_f, d_g, d_o], dim=1), dcell * f


class HMMLogLik(Function):
    """log p(observations), (B,), from log_init (S,), log_trans (S, S) [from, to], log_emit (B, T, S)."""

    @staticmethod
    def forward(ctx, log_init, log_trans, log_emit):
        alpha = [log_init + log_emit[:, 0]]
        for t in range(1, log_emit.size(1)):
            alpha.append(torch.logsumexp(alpha[-1].unsqueeze(2) + log_trans, dim=1) + log_emit[:, t])
        ll = torch.logsumexp(alpha[-1], dim=1)
        ctx.save_for_backward(log_trans, log_emit, torch.stack(alpha, 1), ll)
        return ll

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        log_trans, log_emit, alpha, ll = ctx.saved_tensors
        beta = torch.zeros_like(alpha[:, 0])
        d_emit = torch.empty_like(log_emit)
        d_trans = torch.zeros_like(log_trans)
        for t in range(log_emit.size(1) - 1, -1, -1):
            d_emit[:, t] = g[:, None] * torch.exp(alpha[:, t] + beta - ll[:, None])
            if t == 0:
                break
            nxt = log_trans + (log_emit[:, t] + beta).unsqueeze(1)
            pair = torch.exp(alpha[:, t - 1].unsqueeze(2) + nxt - ll[:, None, None])
            d_trans += torch.einsum("b,bij->ij", g, pair)
            beta = torch.logsumexp(nxt, dim=2)
        return d_emit[:, 0].sum(0), d_trans, d_emit


class SelectiveScan(Function):
    """Diagonal state space scan. u, dt: (B, T, D); A: (D, N); Bm, C: (B, T, N)."""

    @staticmethod
    def forward(ctx, u, dt, A, Bm, C):
        h = u.new_zeros(u.size(0), u.size(2), A.size(1))
        hs, ys = [h], []
        for t in range(u.size(1)):
            decay = torch.exp(dt[:, t, :, None] * A)
            h = decay * h + (dt[:, t] * u[:, t]).unsqueeze(-1) * Bm[:, t].unsqueeze(1)
            hs.append(h)
            ys.append((h * C[:, t].unsqueeze(1)).sum(-1))
        ctx.save_for_backward(u, dt, A, Bm, C, torch.stack(hs, 1))
        return torch.stack(ys, 1)

    @staticmethod
    def backward(ctx, dy):
        u, dt, A, Bm, C, hs = ctx.saved_tensors
        du, ddt = torch.zeros_like(u), torch.zeros_like(dt)
        dA, dB, dC = torch.zeros_like(A), torch.zeros_like(Bm), torch.zeros_like(C)
        dh = torch.zeros_like(hs[:, 0])
        for t in range(u.size(1) - 1, -1, -1):
            decay = torch.exp(dt[:, t, :, None] * A)
            dh = dh + dy[:, t].unsqueeze(-1) * C[:, t].unsqueeze(1)
            dC[:, t] = (dy[:, t].unsqueeze(-1) * hs[:, t + 1]).sum(1)
            through = dh * decay * hs[:, t]
            from_in = (dh * Bm[:, t].unsqueeze(1)).sum(-1)
            du[:, t] = from_in * dt[:, t]
            ddt[:, t] = from_in * u[:, t] + (through * A).sum(-1)
            dB[:, t] = (dh * (dt[:, t] * u[:, t]).unsqueeze(-1)).sum(1)
            dA += (through * dt[:, t].unsqueeze(-1)).sum(0)
            dh = dh * decay
        return du, ddt, dA, dB, dC
