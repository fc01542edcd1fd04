"""Eager references of the fused training kernels."""

import torch
from torch import nn
from torch.autograd import Function


class _RMSNormFn(Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return x * rstd * weight

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + ctx.eps)
        x_hat = x * rstd
        dx_hat = dy * weight
        dx = rstd * (dx_hat - x_hat * (dx_hat * x_hat).mean(-1, keepdim=True))
        dw = (dy * x_hat).reshape(-1, weight.numel()).sum(0)
        return dx, dw, None


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return _RMSNormFn.apply(x, self.weight, self.eps)


def _silu_derivatives(a):
    s = torch.sigmoid(a)
    first = s * (1 + a * (1 - s))
    second = s * (1 - s) * (2 + a * (1 - 2 * s))
    return a * s, first, second


class _SwiGLUGrad(Function):
    """First-order gradient as an operator of its own, so that it can be fused too."""

    @staticmethod
    def forward(ctx, dout, gate, up):
        act, d1, _ = _silu_derivatives(gate)
        ctx.save_for_backward(dout, gate, up)
        return dout * up * d1, dout * act

    @staticmethod
    def backward(ctx, v_gate, v_up):
        dout, gate, up = ctx.saved_tensors
        act, d1, d2 = _silu_derivatives(gate)
        g_dout = v_gate * up * d1 + v_up * act
        g_gate = dout * (v_gate * up * d2 + v_up * d1)
        g_up = v_gate * dout * d1
        return g_dout, g_gate, g_up


class SwiGLU(Function):
    """silu(gate) * up for tensors of one shape."""

    @staticmethod
    def forward(ctx, gate, up):
        assert gate.shape == up.shape
        ctx.save_for_backward(gate, up)
        return gate * torch.sigmoid(gate) * up

    @staticmethod
    def backward(ctx, dout):
        gate, up = ctx.saved_tensors
        return _SwiGLUGrad.apply(dout, gate, up)


def _halves(x, interleaved):
    return (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)


def _join(a, b, interleaved):
    return torch.stack([a, b], -1).flatten(-2) if interleaved else torch.cat([a, b], -1)


class RotaryEmbed(Function):
    """Rotary position embedding.

    x: (..., T, D), D even; cos and sin: (T, D / 2), cached tables without gradient.
    interleaved: pairs are (0, 1), (2, 3), ... rather than (0, D/2), (1, D/2 + 1), ...
    """

    @staticmethod
    def forward(ctx, x, cos, sin, interleaved=False):
        a, b = _halves(x, interleaved)
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved
        return _join(a * cos - b * sin, b * cos + a * sin, interleaved)

    @staticmethod
    def backward(ctx, dy):
        cos, sin = ctx.saved_tensors
        a, b = _halves(dy, ctx.interleaved)
        dx = _join(a * cos + b * sin, b * cos - a * sin, ctx.interleaved)
        return dx, None, None, None


class _CombineFn(Function):
    """Weighted sum of each token's k expert rows; the rows come sorted by expert."""

    @staticmethod
    def forward(ctx, rows, gates, meta):
        order = torch.argsort(meta["expert"].flatten(), stable=True)
        meta["slot"] = torch.argsort(order)
        ctx.meta = meta
        ctx.save_for_backward(rows, gates)
        per_token = rows[meta["slot"]].view(*gates.shape, -1)
        return (gates.unsqueeze(-1) * per_token).sum(1)

    @staticmethod
    def backward(ctx, dout):
        rows, gates = ctx.saved_tensors
        slot = ctx.meta["slot"]
        per_token = rows[slot].view(*gates.shape, -1)
        d_gates = (dout.unsqueeze(1) * per_token).sum(-1)
        d_rows = (dout.unsqueeze(1) * gates.unsqueeze(-1)).flatten(0, 1)
        return torch.zeros_like(rows).index_copy(0, slot, d_rows), d_gates, None


class TopKCombine(nn.Module):
    """Second half of MoE routing, one micro-batch after another.

    rows: (M, T * k, D), gates: (M, T, k), expert: (M, T, k) of expert numbers.
    """

    def __init__(self, name="moe"):
        super().__init__()
        self.meta = {"layer": name}

    def forward(self, rows, gates, expert):
        outs = []
        for r, g, e in zip(rows, gates, expert):
            meta = dict(self.meta)
            meta["expert"] = e
            outs.append(_CombineFn.apply(r, g, meta))
        return torch.stack(outs)


class VarlenAttention(Function):
    """Single-head attention inside of packed sequences; cu_seqlens = [0, l0, l0 + l1, ...]."""

    @staticmethod
    def forward(ctx, q, k, v, cu_seqlens, causal=False, scale=None):
        assert cu_seqlens[0] == 0 and cu_seqlens[-1] == len(q) == len(k) == len(v)
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        ctx.save_for_backward(q, k, v)
        ctx.cu_seqlens, ctx.causal, ctx.scale = list(cu_seqlens), causal, scale
        out = torch.zeros_like(v)
        for lo, hi in zip(cu_seqlens[:-1], cu_seqlens[1:]):
            p = VarlenAttention._probs(q[lo:hi], k[lo:hi], scale, causal)
            out[lo:hi] = p @ v[lo:hi]
        return out

    @staticmethod
    def _probs(q, k, scale, causal):
        s = q @ k.t() * scale
        if causal:
            later = torch.ones_like(s, dtype=torch.bool).triu(1)
            s = s.masked_fill(later, float("-inf"))
        return s.softmax(-1)

    @staticmethod
    def backward(ctx, do):
        q, k, v = ctx.saved_tensors
        dq, dk, dv = [], [], []
        for lo, hi in zip(ctx.cu_seqlens[:-1], ctx.cu_seqlens[1:]):
            qs, ks, vs, g = q[lo:hi], k[lo:hi], v[lo:hi], do[lo:hi]
            p = VarlenAttention._probs(qs, ks, ctx.scale, ctx.causal)
            dp = g @ vs.t()
            ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * ctx.scale
            dq.append(ds @ ks)
            dk.append(ds.t() @ qs)
            dv.append(p.t() @ g)
        return torch.cat(dq), torch.cat(dk), torch.cat(dv), None, None, None


class GroupDequantLinear(Function):
    """x @ W.T + bias with W = (qweight - zeros) * scales, group-wise along the inputs.

    qweight: int8 (O, I); scales (float) and zeros (int8): (O, I / group_size).
    """

    @staticmethod
    def forward(ctx, x, qweight, scales, zeros, bias=None, group_size=32):
        assert qweight.shape[1] % group_size == 0
        level = qweight.to(x.dtype) - zeros.to(x.dtype).repeat_interleave(group_size, 1)
        weight = level * scales.repeat_interleave(group_size, 1)
        ctx.save_for_backward(x, qweight, scales, zeros)
        ctx.group_size = group_size
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, dy):
        x, qweight, scales, zeros = ctx.saved_tensors
        gs = ctx.group_size
        level = qweight.to(x.dtype) - zeros.to(x.dtype).repeat_interleave(gs, 1)
        dx = dscales = dbias = None
        flat = dy.reshape(-1, dy.shape[-1])
        if ctx.needs_input_grad[0]:
            dx = dy @ (level * scales.repeat_interleave(gs, 1))
        if ctx.needs_input_grad[2]:
            dw = flat.t() @ x.reshape(-1, x.shape[-1])
            dscales = (dw * level).view(*scales.shape, gs).sum(-1)
        if ctx.needs_input_grad[4]:
            dbias = flat.sum(0)
        return dx, None, dscales, None, dbias, None


class AddLayerNorm(Function):
    """h = x + residual; returns (layer_norm(h), h).  Pre-norm blocks use both."""

    @staticmethod
    def forward(ctx, x, residual, weight, bias, eps=1e-5):
        h = x + residual
        mu = h.mean(-1, keepdim=True)
        rstd = torch.rsqrt(h.var(-1, unbiased=False, keepdim=True) + eps)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, residual, weight)
        ctx.eps = eps
        return (h - mu) * rstd * weight + bias, h

    @staticmethod
    def backward(ctx, g_norm, g_h):
        if g_norm is None and g_h is None:
            return None, None, None, None, None
        x, residual, weight = ctx.saved_tensors
        if g_norm is None:
            return g_h, g_h, None, None, None
        h = x + residual
        rstd = torch.rsqrt(h.var(-1, unbiased=False, keepdim=True) + ctx.eps)
        xhat = (h - h.mean(-1, keepdim=True)) * rstd
        gx = g_norm * weight
        gx = gx - gx.mean(-1, keepdim=True) - xhat * (gx * xhat).mean(-1, keepdim=True)
        gx = gx * rstd
        if g_h is not None:
            gx = gx + g_h
        gw = (g_norm * xhat).reshape(-1, weight.numel()).sum(0)
        gb = g_norm.reshape(-1, weight.numel()).sum(0)
        return gx, gx, gw, gb, None


class _SoftCapInplace(Function):
    """cap * tanh(x / cap), written over x."""

    @staticmethod
    def forward(ctx, x, cap):
        x.div_(cap).tanh_().mul_(cap)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x, cap)
        return x

    @staticmethod
    def backward(ctx, grad):
        y, cap = ctx.saved_tensors
        t = y / cap
        return grad * (1.0 - t * t), None


class SoftCap(nn.Module):
    """Gemma-style soft cap of the logits after an (optional) temperature."""

    def __init__(self, cap=30.0, temperature=1.0):
        super().__init__()
        self.temperature = temperature
        self.register_buffer("cap", torch.tensor(float(cap)))

    def forward(self, logits):
        return _SoftCapInplace.apply(logits / self.temperature, self.cap)


class AdamStep(Function):
    """One step of Adam, differentiable in all of its tensors (for meta-learning).

    Returns the new (param, exp_avg, exp_avg_sq).  exp_avg_sq must be positive.
    """

    @staticmethod
    def forward(ctx, p, grad, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        b1, b2 = betas
        m = b1 * m + (1 - b1) * grad
        v = b2 * v + (1 - b2) * grad * grad
        denom = (v / (1 - b2**step)).sqrt() + eps
        p = p - lr / (1 - b1**step) * m / denom
        ctx.save_for_backward(grad, m, v)
        ctx.hyper = (step, lr, b1, b2, eps)
        return p, m, v

    @staticmethod
    def backward(ctx, dp, dm, dv):
        grad, m, v = ctx.saved_tensors
        step, lr, b1, b2, eps = ctx.hyper
        rate = lr / (1 - b1**step)
        root = (v / (1 - b2**step)).sqrt()
        denom = root + eps
        dm = dm - rate * dp / denom
        dv = dv + dp * rate * m / denom**2 / (2 * root * (1 - b2**step))
        dgrad = (1 - b1) * dm + 2 * (1 - b2) * grad * dv
        return dp, dgrad, b1 * dm, b2 * dv, None, None, None, None


class RepeatKV(Function):
    """(B, T, H_kv, D) -> (B, T, H_kv * n_rep, D): each head repeated n_rep times in a row."""

    @staticmethod
    def forward(ctx, kv, n_rep):
        ctx.n_rep = n_rep
        return kv.repeat_interleave(n_rep, dim=2)

    @staticmethod
    def backward(ctx, dout):
        b, t, h, d = dout.shape
        n = ctx.n_rep
        dkv = dout.reshape(b, t, h // n, n, d).sum(3)
        return dkv, None


def repeat_kv(kv, n_rep):
    return kv if n_rep == 1 else RepeatKV.apply(kv, n_rep)
