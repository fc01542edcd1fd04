"""Recurrences, attention without softmax and dynamic programs over sequences."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class MinGatedScan(torch.autograd.Function):
    """h_t = f_t h_{t-1} + (1 - f_t) x_t, time first."""

    @staticmethod
    def forward(ctx, f, x, h0):
        if f.shape != x.shape or h0.shape != x.shape[1:]:
            raise ValueError("f and x must be (T, B, D), h0 (B, D)")
        hs, h = [], h0
        for t in range(x.size(0)):
            h = f[t] * h + (1.0 - f[t]) * x[t]
            hs.append(h)
        out = torch.stack(hs)
        ctx.save_for_backward(f, x, h0, out)
        return out

    @staticmethod
    def backward(ctx, grad_h):
        f, x, h0, out = ctx.saved_tensors
        prev = torch.cat([h0.unsqueeze(0), out[:-1]])
        leak = f.neg().add_(1.0)
        carry = torch.zeros_like(h0)
        deltas = []
        for t in range(x.size(0) - 1, -1, -1):
            delta = carry + grad_h[t]
            deltas.append(delta)
            carry = delta * f[t]
        delta = torch.stack(deltas[::-1])
        return delta * (prev - x), delta * leak, carry


class CausalLinearAttention(torch.autograd.Function):
    """tril(q k^T) v without a softmax."""

    @staticmethod
    def forward(ctx, q, k, v, scale=None):
        scale = q.size(-1) ** -0.5 if scale is None else scale
        ctx.save_for_backward(q, k, v)
        ctx.scale = scale
        att = torch.tril(q @ k.transpose(-1, -2)) * scale
        return att @ v

    @staticmethod
    def backward(ctx, grad):
        q, k, v = ctx.saved_tensors
        att = torch.tril(q @ k.transpose(-1, -2)) * ctx.scale
        grad_v = att.transpose(-1, -2) @ grad
        grad_att = torch.tril(grad @ v.transpose(-1, -2)) * ctx.scale
        grad_q = grad_att @ k
        grad_k = grad_att.transpose(-1, -2) @ q
        return grad_q, grad_k, grad_v, None


class CtcForwardSum(torch.autograd.Function):
    """-log of the sum over CTC alignments of one utterance.

    log_probs: (T, C), targets: (S,) labels other than blank.
    """

    @staticmethod
    def forward(ctx, log_probs, targets, blank=0):
        T, C = log_probs.shape
        n = 2 * targets.numel() + 1
        ext = torch.full((n,), blank, dtype=torch.long)
        ext[1::2] = targets
        skip = torch.zeros(n, dtype=torch.bool)
        skip[2:] = (ext[2:] != blank) & (ext[2:] != ext[:-2])
        neg = float("-inf")
        lp = log_probs[:, ext]
        alpha = torch.full_like(lp, neg)
        beta = torch.full_like(lp, neg)
        alpha[0, :2] = lp[0, :2]
        beta[-1, -2:] = 0.0
        for t in range(1, T):
            a = alpha[t - 1]
            one = F.pad(a[:-1], (1, 0), value=neg)
            two = F.pad(a[:-2], (2, 0), value=neg)[:n].masked_fill(~skip, neg)
            alpha[t] = torch.stack([a, one, two]).logsumexp(0) + lp[t]
        for t in range(T - 2, -1, -1):
            b = beta[t + 1] + lp[t + 1]
            one = F.pad(b[1:], (0, 1), value=neg)
            two = F.pad(b.masked_fill(~skip, neg)[2:], (0, 2), value=neg)[:n]
            beta[t] = torch.stack([b, one, two]).logsumexp(0)
        log_z = alpha[-1, -2:].logsumexp(0)
        ctx.save_for_backward((alpha + beta - log_z).exp(), ext)
        ctx.classes = C
        return -log_z

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        occupancy, ext = ctx.saved_tensors
        grad = occupancy.new_zeros(occupancy.size(0), ctx.classes)
        grad.index_add_(1, ext, occupancy)
        return -grad_loss * grad, None, None


class CrfLogPartition(torch.autograd.Function):
    """log Z of a linear-chain CRF, one value a sequence; mask is right padded."""

    @staticmethod
    def _forward_pass(emissions, transitions, mask):
        a = emissions[:, 0]
        alphas = [a]
        for t in range(1, emissions.size(1)):
            new = torch.logsumexp(a.unsqueeze(2) + transitions, 1) + emissions[:, t]
            a = torch.where(mask[:, t, None], new, a)
            alphas.append(a)
        return alphas

    @staticmethod
    def forward(ctx, emissions, transitions, mask=None):
        assert emissions.dim() == 3
        if mask is None:
            mask = torch.ones_like(emissions[..., 0], dtype=torch.bool)
        mask = mask.clone()
        mask[:, 0] = True
        alphas = CrfLogPartition._forward_pass(emissions, transitions, mask)
        ctx.save_for_backward(emissions, transitions, mask)
        return torch.logsumexp(alphas[-1], 1)

    @staticmethod
    def backward(ctx, g):
        em, trans, mask = ctx.saved_tensors
        alphas = CrfLogPartition._forward_pass(em, trans, mask)
        log_z = torch.logsumexp(alphas[-1], 1)[:, None]
        b = torch.zeros_like(em[:, 0])
        unary = [None] * em.size(1)
        grad_trans = torch.zeros_like(trans)
        for t in range(em.size(1) - 1, -1, -1):
            on = mask[:, t, None].to(em.dtype)
            unary[t] = torch.exp(alphas[t] + b - log_z) * on
            if t == 0:
                break
            step = trans + (em[:, t] + b).unsqueeze(1)
            pair = torch.exp(alphas[t - 1].unsqueeze(2) + step - log_z.unsqueeze(2))
            grad_trans = grad_trans + (pair * (on * g[:, None]).unsqueeze(2)).sum(0)
            b = torch.where(mask[:, t, None], torch.logsumexp(step, 2), b)
        grad_em = torch.stack(unary, 1) * g[:, None, None]
        return grad_em, grad_trans, None


class SoftPathCost(torch.autograd.Function):
    """Soft minimum over monotone alignment paths of an (N, M) cost table."""

    @staticmethod
    def forward(ctx, cost, gamma=1.0):
        if gamma <= 0:
            raise ValueError("gamma must be positive")
        D = cost.detach().cpu().numpy()
        n, m = D.shape
        R = np.full((n + 2, m + 2), np.inf, dtype=D.dtype)
        R[0, 0] = 0.0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                prev = -np.array([R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]]) / gamma
                top = prev.max()
                soft = top + np.log(np.exp(prev - top).sum())
                R[i, j] = D[i - 1, j - 1] - gamma * soft
        ctx.save_for_backward(cost)
        ctx.R, ctx.gamma = R, gamma
        return cost.new_tensor(R[n, m])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        (cost,) = ctx.saved_tensors
        n, m = cost.shape
        gamma = ctx.gamma
        D = np.zeros((n + 2, m + 2))
        D[1:-1, 1:-1] = cost.detach().cpu().numpy()
        R = ctx.R.copy()
        R[n + 1, :] = R[:, m + 1] = -np.inf
        R[n + 1, m + 1] = R[n, m]
        E = np.zeros_like(D)
        E[n + 1, m + 1] = 1.0
        for j in range(m, 0, -1):
            for i in range(n, 0, -1):
                down = np.exp((R[i + 1, j] - R[i, j] - D[i + 1, j]) / gamma)
                right = np.exp((R[i, j + 1] - R[i, j] - D[i, j + 1]) / gamma)
                diag = np.exp((R[i + 1, j + 1] - R[i, j] - D[i + 1, j + 1]) / gamma)
                E[i, j] = (
                    down * E[i + 1, j] + right * E[i, j + 1] + diag * E[i + 1, j + 1]
                )
        grad = torch.from_numpy(E[1:-1, 1:-1].copy()).to(cost)
        return grad * grad_out, None


class TokenShift(torch.autograd.Function):
    """mu x_t + (1 - mu) x_{t-1} with one mixing weight a channel."""

    @staticmethod
    def forward(ctx, x, mu):
        assert x.dim() == 3 and mu.dim() == 1
        prev = F.pad(x, (0, 0, 1, -1))
        ctx.save_for_backward(x, mu)
        return x * mu + prev * (1.0 - mu)

    @staticmethod
    def backward(ctx, grad):
        x, mu = ctx.saved_tensors
        grad_x = grad_mu = None
        if ctx.needs_input_grad[0]:
            later = F.pad(grad, (0, 0, -1, 1))
            grad_x = grad * mu + later * (1.0 - mu)
        if ctx.needs_input_grad[1]:
            prev = F.pad(x, (0, 0, 1, -1))
            grad_mu = (grad * (x - prev)).sum(dim=(0, 1))
        return grad_x, grad_mu


class _DistancePenalty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, slopes, dist):
        ctx.save_for_backward(dist)
        return scores - slopes[:, None, None] * dist

    @staticmethod
    def backward(ctx, grad):
        (dist,) = ctx.saved_tensors
        grad_slopes = -(grad * dist).sum(dim=(0, 2, 3))
        return grad, grad_slopes, None


class AlibiBias(nn.Module):
    """Linear distance penalty on attention scores (B, H, Tq, Tk), learnable slopes."""

    def __init__(self, n_heads, max_distance=64):
        super().__init__()
        start = 2.0 ** (-8.0 / n_heads)
        self.slopes = nn.Parameter(
            torch.tensor([start ** (h + 1) for h in range(n_heads)])
        )
        self.max_distance = max_distance

    def forward(self, scores):
        if scores.dim() != 4:
            raise ValueError("scores must be (B, H, Tq, Tk)")
        tq, tk = scores.shape[-2:]
        qi = torch.arange(tk - tq, tk, device=scores.device)
        ki = torch.arange(tk, device=scores.device)
        dist = (qi[:, None] - ki[None, :]).abs().clamp(max=self.max_distance)
        return _DistancePenalty.apply(scores, self.slopes, dist.to(scores.dtype))


class ComplexDiagonalScan(torch.autograd.Function):
    """h_t = lam * h_{t-1} + u_t with complex lam (D,) and u (B, T, D)."""

    @staticmethod
    def forward(ctx, lam, u):
        assert lam.dim() == 1 and u.dim() == 3
        h = torch.zeros_like(u[:, 0])
        states = []
        for t in range(u.size(1)):
            h = lam * h + u[:, t]
            states.append(h)
        out = torch.stack(states, dim=1)
        ctx.save_for_backward(lam, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        lam, out = ctx.saved_tensors
        carry = torch.zeros_like(out[:, 0])
        grads = []
        for t in reversed(range(out.size(1))):
            carry = grad[:, t] + lam.conj() * carry
            grads.append(carry)
        grad_u = torch.stack(grads[::-1], dim=1)
        grad_lam = (grad_u[:, 1:] * out[:, :-1].conj()).sum((0, 1))
        return grad_lam, grad_u


class MaskedMeanPool(torch.autograd.Function):
    """Mean over the first lengths[b] steps; an empty sequence pools to zero."""

    @staticmethod
    def forward(ctx, x, lengths):
        if x.dim() != 3 or lengths.shape != x.shape[:1]:
            raise ValueError("expected x (B, T, D) and lengths (B,)")
        steps = torch.arange(x.size(1), device=x.device)
        keep = (steps < lengths[:, None]).unsqueeze(-1)
        count = lengths.clamp(min=1)
        ctx.save_for_backward(keep, lengths)
        return (x * keep).sum(1) / count[:, None]

    @staticmethod
    def backward(ctx, grad_pooled):
        keep, lengths = ctx.saved_tensors
        count = lengths.clamp(min=1)
        each = grad_pooled / count[:, None]
        return each.unsqueeze(1) * keep, None


class _CausalMixFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        t = x.size(1)
        ctx.save_for_backward(x, weight)
        return torch.tril(weight[:t, :t]) @ x + bias[:t, None]

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        t, extra = x.size(1), weight.size(0) - x.size(1)
        grad_x = torch.tril(weight[:t, :t]).t() @ grad
        grad_w = torch.tril((grad @ x.transpose(1, 2)).sum(0))
        grad_w = F.pad(grad_w, (0, extra, 0, extra))
        grad_b = F.pad(grad.sum((0, 2)), (0, extra))
        return grad_x, grad_w, grad_b


class CausalTokenMix(nn.Module):
    """Learned causal mixing over time, (B, T, C) with T <= max_len."""

    def __init__(self, max_len=8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_len, max_len) / math.sqrt(max_len))
        self.bias = nn.Parameter(torch.zeros(max_len))

    def forward(self, x):
        if x.dim() != 3 or x.size(1) > self.weight.size(0):
            raise ValueError("expected (B, T, C) with T <= max_len")
        return _CausalMixFn.apply(x, self.weight, self.bias)
