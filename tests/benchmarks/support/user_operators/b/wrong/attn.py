import torch
from torch import Tensor, nn
from torch.autograd import Function
from typing import Optional


class MaskedSoftmax(Function):
    """Softmax over `dim`; positions where mask is False get weight 0, also in all-masked rows."""

    @staticmethod
    def forward(ctx, scores, mask=None, dim=-1):
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        top = scores.amax(dim, keepdim=True)
        top = top.masked_fill(torch.isinf(top), 0.0)
        e = torch.exp(scores - top)
        out = e / e.sum(dim, keepdim=True).clamp_min(torch.finfo(e.dtype).tiny)
        ctx.save_for_backward(out)
        ctx.dim = dim
        return out

    @staticmethod
    def backward(ctx, grad_out):
        (out,) = ctx.saved_tensors
        inner = (grad_out * out).sum(-1, keepdim=True)
        return out * (grad_out - inner), None, None


def _attn_scores(q, k, bias, scale):
    s = q @ k.transpose(-2, -1) * scale
    return s if bias is None else s + bias


class BiasedAttention(Function):
    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, bias: Optional[Tensor] = None,
                scale: Optional[float] = None) -> Tensor:
        ctx.scale = q.size(-1) ** -0.5 if scale is None else scale
        ctx.save_for_backward(q, k, v, bias)
        return torch.softmax(_attn_scores(q, k, bias, ctx.scale), dim=-1) @ v

    @staticmethod
    def backward(ctx, do):
        q, k, v, bias = ctx.saved_tensors
        # cheaper to redo the scores than to keep them
        p = torch.softmax(_attn_scores(q, k, bias, ctx.scale), dim=-1).detach()
        dv = p.transpose(-2, -1) @ do
        dp = do @ v.transpose(-2, -1)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True))
        dq = ds @ k * ctx.scale
        dk = ds.transpose(-2, -1) @ q * ctx.scale
        db = None if bias is None else ds.sum_to_size(bias.shape)
        return dq, dk, dv, db, None


class Sparsemax(Function):
    @staticmethod
    def forward(ctx, z, dim=-1):
        zs, _ = torch.sort(z, dim=dim, descending=True)
        cs = zs.cumsum(dim) - 1
        shape = [1] * z.dim()
        shape[dim] = -1
        r = torch.arange(1, z.size(dim) + 1, dtype=z.dtype, device=z.device).view(shape)
        k = (r * zs > cs).sum(dim, keepdim=True)
        tau = cs.gather(dim, k - 1) / k
        out = torch.clamp(z - tau, min=0)
        ctx.dim = dim
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        out, = ctx.saved_tensors
        supp = (out > 0).to(g.dtype)
        avg = (g * supp).mean(ctx.dim, keepdim=True)
        return supp * (g - avg), None


class LearnedRotary(Function):
    """Rotary embedding with trainable frequencies; x: (B, T, D), D even, inv_freq: (D/2,)."""

    @staticmethod
    def forward(ctx, x, inv_freq, offset=0):
        assert x.size(-1) == 2 * inv_freq.numel(), "last axis must be twice the number of frequencies"
        pos = torch.arange(offset, offset + x.size(1), dtype=x.dtype, device=x.device)[:, None]
        c, s = (pos * inv_freq).cos(), (pos * inv_freq).sin()
        x1, x2 = x[..., 0::2], x[..., 1::2]
        ctx.save_for_backward(x, inv_freq, pos)
        return torch.stack([x1 * c - x2 * s, x1 * s + x2 * c], dim=-1).flatten(-2)

    @staticmethod
    def backward(ctx, g):
        x, inv_freq, pos = ctx.saved_tensors
        c, s = (pos * inv_freq).cos(), (pos * inv_freq).sin()
        x1, x2 = x[..., 0::2], x[..., 1::2]
        g1, g2 = g[..., 0::2], g[..., 1::2]
        gx = torch.stack([g1 * c + g2 * s, g2 * c - g1 * s], dim=-1).flatten(-2)
        d_angle = g2 * (x1 * c - x2 * s) - g1 * (x1 * s + x2 * c)
        return gx, d_angle.sum((0, 1)), None


class CausalLinearAttention(Function):
    """o_t = q_t @ sum_{s<=t} k_s v_s^T for q, k: (B, T, D) and v: (B, T, E)."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        state = torch.einsum("btd,bte->btde", k, v).cumsum(1)
        return torch.einsum("btd,btde->bte", q, state)

    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        state = torch.einsum("btd,bte->btde", k, v).cumsum(1)
        gq = torch.einsum("bte,btde->btd", g, state)
        qg = torch.einsum("btd,bte->btde", q, g)
        future = qg.sum(1, keepdim=True) - qg.cumsum(1)
        gk = torch.einsum("btde,bte->btd", future, v)
        gv = torch.einsum("btde,btd->bte", future, k)
        return gq, gk, gv


class MaskedMeanPool(Function):
    """Mean of x (B, T, D) over the tokens where mask (B, T) is True."""

    @staticmethod
    def forward(ctx, x, mask):
        m = mask.unsqueeze(-1).to(x.dtype)
        n = m.sum(dim=1).clamp(min=1.0)
        ctx.save_for_backward(m, n)
        return (x * m).sum(dim=1) / n

    @staticmethod
    def backward(ctx, grad):
        m, n = ctx.saved_tensors
        gx = (grad / n).unsqueeze(1).expand(-1, m.size(1), -1)
        return gx, None


class ComplexRotary(Function):
    """Rotates complex features z (B, T, H, K) by the angles theta (T, K)."""

    @staticmethod
    def forward(ctx, z, theta):
        if not z.is_complex():
            raise TypeError("z must be complex; use torch.view_as_complex first")
        ctx.save_for_backward(z, theta)
        return z * torch.polar(torch.ones_like(theta), theta).unsqueeze(1)

    @staticmethod
    def backward(ctx, g):
        z, theta = ctx.saved_tensors
        rot = torch.polar(torch.ones_like(theta), theta).unsqueeze(1)
        grad_z = g * rot
        grad_theta = (g.conj() * (1j * z * rot)).real.sum((0, 2))
        return grad_z, grad_theta


class TokenDrop(Function):
    @staticmethod
    def forward(ctx, x, keep, p=0.1, training=True):
        if not 0 <= p < 1:
            raise ValueError("p has to be in [0, 1)")
        ctx.p, ctx.training = p, training
        m = keep.to(x.dtype).unsqueeze(-1)
        ctx.save_for_backward(m)
        if not training:
            return x.clone()
        return x * m / (1 - p)

    @staticmethod
    def backward(ctx, grad_output):
        m, = ctx.saved_tensors
        grad_input = grad_output
        if ctx.p > 0:
            grad_input = grad_output * m / (1 - ctx.p)
        return grad_input, None, None, None


class _AddRelBias(Function):
    @staticmethod
    def forward(ctx, scores, table, idx):
        ctx.save_for_backward(idx)
        ctx.table_shape = table.shape
        return scores + table[:, idx]

    @staticmethod
    def backward(ctx, g):
        idx, = ctx.saved_tensors
        per_head = g.mean(0).flatten(1)
        g_table = g.new_zeros(ctx.table_shape).index_add_(1, idx.flatten(), per_head)
        return g, g_table, None


class RelPosBias(nn.Module):
    """Adds a clipped relative-position bias to attention scores (B, H, Tq, Tk)."""

    def __init__(self, heads: int, max_dist: int = 8):
        super().__init__()
        self.max_dist = max_dist
        self.table = nn.Parameter(torch.zeros(heads, 2 * max_dist + 1))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, scores: Tensor) -> Tensor:
        tq, tk = scores.shape[-2:]
        rel = torch.arange(tk)[None, :] - torch.arange(tq)[:, None]
        idx = rel.clamp(-self.max_dist, self.max_dist) + self.max_dist
        return _AddRelBias.apply(scores, self.table, idx.to(scores.device))


class TopKGate(Function):
    """Router weights: softmax over the k largest logits of each row, 0 elsewhere."""

    @staticmethod
    def forward(ctx, logits, k=2):
        val, idx = logits.topk(k, dim=-1)
        gates = torch.zeros_like(logits).scatter(-1, idx, torch.softmax(val, dim=-1))
        ctx.save_for_backward(gates)
        ctx.mark_non_differentiable(idx)
        return gates, idx

    @staticmethod
    def backward(ctx, g, _):
        gates, = ctx.saved_tensors
        g_logits = g * gates * (1 - gates)
        return g_logits, None
