# Fused pieces of the transformer block.  Everything is batch first.
import math
from typing import Optional, Tuple

import torch
import torch.nn.functional as F


class PaddedCrossEntropy(torch.autograd.Function):
    """Mean token cross entropy over the non padding positions.

    logits: (N, V), target: (N,) with ``pad_id`` at positions to skip.
    """

    @staticmethod
    def forward(ctx, logits, target, pad_id=-100, smoothing=0.0):
        assert logits.dim() == 2 and target.dim() == 1
        valid = target != pad_id
        safe = target.masked_fill(~valid, 0)
        logp = F.log_softmax(logits, dim=-1)
        nll = -logp.gather(1, safe[:, None]).squeeze(1)
        loss = (1 - smoothing) * nll - smoothing * logp.mean(dim=-1)
        ctx.save_for_backward(logits, safe, valid)
        ctx.smoothing = smoothing
        return (loss * valid).sum() / valid.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, grad_output):
        logits, safe, valid = ctx.saved_tensors
        V = logits.shape[1]
        q = F.one_hot(safe, V).to(logits.dtype) * (1 - ctx.smoothing) + ctx.smoothing / V
        count = valid.sum().clamp(min=1)
        grad = (logits.softmax(dim=-1) - q) * valid[:, None]
        return grad_output * grad / count, None, None, None


class RotaryHalf(torch.autograd.Function):
    """Rotary embedding, half-split layout, on (..., L, D) with D even."""

    @staticmethod
    def _angles(x, positions, base):
        L, D = x.shape[-2:]
        if positions is None:
            positions = torch.arange(L, device=x.device)
        inv = base ** (-torch.arange(0, D, 2, dtype=x.dtype, device=x.device) / D)
        th = positions.to(x.dtype)[:, None] * inv
        return th.cos(), th.sin()

    @staticmethod
    def forward(x, positions=None, base=10000.0):
        if x.shape[-1] % 2:
            raise ValueError("head dimension has to be even")
        c, s = RotaryHalf._angles(x, positions, base)
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat((x1 * c - x2 * s, x2 * c + x1 * s), dim=-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x = inputs[0]
        positions = inputs[1] if len(inputs) > 1 else None
        base = inputs[2] if len(inputs) > 2 else 10000.0
        ctx.n = len(inputs)
        ctx.cos, ctx.sin = RotaryHalf._angles(x, positions, base)

    @staticmethod
    def backward(ctx, grad):
        c, s = ctx.cos, ctx.sin
        g1, g2 = grad.chunk(2, dim=-1)
        gx = torch.cat((g1 * c + g2 * s, g2 * c - g1 * s), dim=-1)
        return (gx,) + (None,) * (ctx.n - 1)


class AlibiScores(torch.autograd.Function):
    """Attention scores with a linear distance penalty and one slope per head."""

    @staticmethod
    def forward(ctx, q, k, slopes, scale: Optional[float] = None):
        # q: B H L D, k: B H S D, slopes: H
        if scale is None:
            scale = q.shape[-1] ** -0.5
        i = torch.arange(q.shape[2], device=q.device)[:, None]
        j = torch.arange(k.shape[2], device=q.device)[None, :]
        dist = (i - j).abs().to(q.dtype)
        ctx.save_for_backward(q, k)
        ctx.dist, ctx.scale = dist, scale
        return torch.matmul(q, k.transpose(-1, -2)) * scale - slopes.view(1, -1, 1, 1) * dist

    @staticmethod
    def backward(ctx, grad):
        q, k = ctx.saved_tensors
        gq = torch.matmul(grad, k) * ctx.scale
        gk = torch.matmul(grad.transpose(-1, -2), q) * ctx.scale
        gs = -(grad * ctx.dist).sum(0).sum((1, 2))
        return gq, gk, gs, None


class GroupedQueryScores(torch.autograd.Function):
    """q: (B, Hq, L, D), k: (B, Hk, S, D), Hq a multiple of Hk."""

    @staticmethod
    def forward(ctx, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        if q.size(1) % k.size(1) != 0:
            raise ValueError("number of query heads must be a multiple of the key heads")
        rep = q.size(1) // k.size(1)
        ctx.save_for_backward(q, k)
        ctx.rep = rep
        return torch.einsum("bhld,bhsd->bhls", q, k.repeat_interleave(rep, dim=1)) / math.sqrt(q.size(-1))

    @staticmethod
    def backward(ctx, grad_scores):
        q, k = ctx.saved_tensors
        B, Hk, S, D = k.shape
        grad_scores = grad_scores / math.sqrt(D)
        gq = gk = None
        if ctx.needs_input_grad[0]:
            gq = torch.einsum("bhls,bhsd->bhld", grad_scores, k.repeat_interleave(ctx.rep, dim=1))
        if ctx.needs_input_grad[1]:
            per_head = torch.einsum("bhls,bhld->bhsd", grad_scores, q)
            gk = per_head.reshape(B, Hk, ctx.rep, S, D).sum(2)
        return gq, gk


class _SwiGLUGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, gate, up, beta):
        ctx.save_for_backward(g, gate, up)
        ctx.beta = beta
        s = torch.sigmoid(beta * gate)
        d1 = s + beta * gate * s * (1 - s)
        return g * up * d1, g * gate * s

    @staticmethod
    def backward(ctx, v_gate, v_up):
        g, gate, up = ctx.saved_tensors
        beta = ctx.beta
        s = torch.sigmoid(beta * gate)
        d1 = s + beta * gate * s * (1 - s)
        d2 = beta * s * (1 - s) * (2 + beta * gate * (1 - 2 * s))
        gg = v_gate * up * d1 + v_up * gate * s
        ggate = g * (v_gate * up * d2 + v_up * d1)
        return gg, ggate, v_gate * g * d1, None


class SwiGLU(torch.autograd.Function):
    """up * silu_beta(gate), with its double backward fused too (for the meta-learning runs)."""

    @staticmethod
    def forward(ctx, gate, up, beta=1.0):
        ctx.save_for_backward(gate, up)
        ctx.beta = beta
        return up * gate * torch.sigmoid(beta * gate)

    @staticmethod
    def backward(ctx, grad_output):
        gate, up = ctx.saved_tensors
        a, b = _SwiGLUGrad.apply(grad_output, gate, up, ctx.beta)
        return a, b, None


class AddRMSNorm(torch.autograd.Function):
    """h = x + residual;  returns (rmsnorm(h) * weight, h)."""

    @staticmethod
    def forward(ctx, x, residual, weight, eps: float = 1e-6) -> Tuple[torch.Tensor, torch.Tensor]:
        h = x + residual
        rstd = torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
        y = h * rstd * weight
        ctx.save_for_backward(h, weight)
        ctx.eps = eps
        return y, h

    @staticmethod
    def backward(ctx, gy, gh):
        h, weight = ctx.saved_tensors
        rstd = torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + ctx.eps)
        n = h * rstd
        gn = gy * weight
        dx = rstd * (gn - n * (gn * n).mean(-1, keepdim=True)) + gh
        dw = (gy * n).reshape(-1, weight.numel()).sum(0)
        return dx, dx, dw, None


class MoEApply(torch.autograd.Function):
    """Top-1 mixture: token t goes to expert expert_id[t] and is scaled by gate[t].

    tokens (T, D), experts (E, D, F), expert_id (T,) long, gate (T,)
    """

    @staticmethod
    def forward(ctx, tokens, experts, expert_id, gate):
        assert expert_id.dtype == torch.long
        assert tokens.shape[0] == expert_id.shape[0] == gate.shape[0]
        ctx.save_for_backward(tokens, experts, expert_id, gate)
        out = torch.einsum("td,tdf->tf", tokens, experts[expert_id])
        return out * gate.unsqueeze(-1)

    @staticmethod
    def backward(ctx, grad):
        tokens, experts, expert_id, gate = ctx.saved_tensors
        w = experts[expert_id]
        d_gate = (grad * torch.einsum("td,tdf->tf", tokens, w)).sum(-1)
        g = grad * gate.unsqueeze(-1)
        d_tokens = torch.einsum("tf,tdf->td", g, w)
        d_experts = torch.zeros_like(experts)
        d_experts.index_add_(0, expert_id, tokens.unsqueeze(2) * g.unsqueeze(1))
        return d_tokens, d_experts, None, d_gate


class MaskedMeanPool(torch.autograd.Function):
    """Mean of hidden (B, L, D) over the first lengths[b] steps; empty rows give zeros."""

    @staticmethod
    def forward(ctx, hidden, lengths):
        B, L, D = hidden.shape
        mask = torch.arange(L, device=hidden.device)[None, :] < lengths[:, None]
        ctx.save_for_backward(mask, lengths)
        denom = lengths.clamp(min=1).to(hidden.dtype)
        return (hidden * mask.unsqueeze(-1)).sum(1) / denom[:, None]

    @staticmethod
    def backward(ctx, grad):
        mask, lengths = ctx.saved_tensors
        denom = lengths.clamp(min=1).to(grad.dtype)
        return (grad / denom[:, None]).unsqueeze(1) * mask.unsqueeze(-1), None


class CausalSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, scale=1.0):
        """Softmax of scale * scores over the last axis, where key j <= query i."""
        L, S = scores.shape[-2:]
        hide = torch.ones(L, S, dtype=torch.bool, device=scores.device).triu(1)
        p = (scores * scale).masked_fill(hide, float("-inf")).softmax(dim=-1)
        ctx.save_for_backward(p)
        ctx.scale = scale
        return p

    @staticmethod
    def backward(ctx, grad):
        p, = ctx.saved_tensors
        dot = (grad * p).sum(dim=-1, keepdim=True)
        grad = grad - dot
        return grad * p * ctx.scale, None


class SoftCap(torch.autograd.Function):
    """Gemma style soft capping of logits: cap * tanh(x / cap)."""

    @staticmethod
    def forward(x, cap=30.0):
        return cap * torch.tanh(x / cap)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.cap = inputs[1] if len(inputs) > 1 else 30.0
        ctx.n = len(inputs)
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        y = ctx.saved_tensors[0]
        gx = grad_output * (1 - (y / ctx.cap) ** 2)
        return (gx, None)[: ctx.n]


def soft_cap(logits, cap=30.0):
    return SoftCap.apply(logits, cap)
