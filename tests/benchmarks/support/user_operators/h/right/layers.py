"""Layers that the stock ones were too slow or too hungry for."""

from typing import Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function


class AddRMSNorm(Function):
    """h = x + residual; returns (rmsnorm(h) * weight, h)."""

    @staticmethod
    def forward(
        ctx, x: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-6
    ) -> Tuple[Tensor, Tensor]:
        h = x + residual
        rstd = torch.rsqrt(h.square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(h, weight)
        ctx.eps = eps
        return h * rstd * weight, h

    @staticmethod
    def backward(ctx, grad_y: Tensor, grad_h: Tensor):
        h, weight = ctx.saved_tensors
        rstd = torch.rsqrt(h.square().mean(-1, keepdim=True) + ctx.eps)
        hat = h * rstd
        gw = grad_y * weight
        inner = rstd * (gw - hat * (gw * hat).mean(-1, keepdim=True))
        total = inner + grad_h
        grad_weight = (grad_y * hat).reshape(-1, weight.numel()).sum(0)
        return total, total, grad_weight, None


class _EluInplace(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        x.copy_(torch.where(x > 0, x, alpha * torch.expm1(x)))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return x

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad, grad * (y + ctx.alpha)), None


class LeanELU(nn.Module):
    """ELU that keeps its output only.  overwrite=True also reuses the input's memory."""

    def __init__(self, alpha: float = 1.0, overwrite: bool = False):
        super().__init__()
        if alpha <= 0:
            raise ValueError("alpha must be positive")
        self.alpha = alpha
        self.overwrite = overwrite

    def forward(self, x: Tensor) -> Tensor:
        return _EluInplace.apply(x if self.overwrite else x.clone(), self.alpha)


class _KeepScale(Function):
    @staticmethod
    def forward(ctx, x, keep, p):
        ctx.save_for_backward(keep)
        ctx.p = p
        return x * keep / (1.0 - p)

    @staticmethod
    def backward(ctx, grad_out):
        (keep,) = ctx.saved_tensors
        return grad_out * keep / (1.0 - ctx.p), None, None


class SeededDropout(nn.Module):
    """Dropout with a byte mask drawn from a private seed, the same on every rank."""

    def __init__(self, p=0.5, seed=0):
        super().__init__()
        assert 0.0 <= p < 1.0
        self.p = p
        self.seed = seed

    def forward(self, x):
        if not self.training or self.p == 0.0:
            return x
        gen = torch.Generator().manual_seed(self.seed)
        keep = torch.rand(x.shape, generator=gen) >= self.p
        return _KeepScale.apply(x, keep.to(x.device), self.p)


class CausalAttention(Function):
    """Attention over (..., T, D) that recomputes the probabilities in backward."""

    @staticmethod
    def _probs(q, k, scale, causal):
        s = q @ k.mT * scale
        if causal:
            ahead = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1)
            s = s.masked_fill(ahead, float("-inf"))
        return s.softmax(-1)

    @staticmethod
    def forward(ctx, q, k, v, scale: Optional[float] = None, causal: bool = True):
        scale = q.size(-1) ** -0.5 if scale is None else scale
        ctx.save_for_backward(q, k, v)
        ctx.scale, ctx.causal = scale, causal
        return CausalAttention._probs(q, k, scale, causal) @ v

    @staticmethod
    def backward(ctx, dout):
        q, k, v = ctx.saved_tensors
        p = CausalAttention._probs(q, k, ctx.scale, ctx.causal)
        dv = p.mT @ dout
        dp = dout @ v.mT
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale
        return ds @ k, ds.mT @ q, dv, None, None


class WindowConv1d(Function):
    """Plain conv1d: x (B, C, T), weight (O, C, K), optional bias (O,)."""

    @staticmethod
    def _taps(length, k, stride, dilation, device):
        steps = (length - dilation * (k - 1) - 1) // stride + 1
        start = torch.arange(steps, device=device) * stride
        return start[:, None] + torch.arange(k, device=device) * dilation

    @staticmethod
    def forward(ctx, x, weight, bias=None, stride=1, padding=0, dilation=1):
        xp = F.pad(x, (padding, padding))
        k = weight.size(2)
        taps = WindowConv1d._taps(xp.size(2), k, stride, dilation, x.device)
        out = torch.einsum("bclk,ock->bol", xp[:, :, taps], weight)
        ctx.save_for_backward(x, weight, bias)
        ctx.opts = stride, padding, dilation
        return out if bias is None else out + bias[:, None]

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        stride, padding, dilation = ctx.opts
        xp = F.pad(x, (padding, padding))
        k = weight.size(2)
        taps = WindowConv1d._taps(xp.size(2), k, stride, dilation, x.device)
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            cols = torch.einsum("bol,ock->bclk", grad, weight).flatten(2)
            full = torch.zeros_like(xp).index_add(2, taps.reshape(-1), cols)
            gx = full[..., padding : padding + x.size(2)]
        if ctx.needs_input_grad[1]:
            gw = torch.einsum("bol,bclk->ock", grad, xp[:, :, taps])
        if bias is not None and ctx.needs_input_grad[2]:
            gb = grad.sum(dim=(0, 2))
        return gx, gw, gb, None, None, None


class StripMaxPool(Function):
    """Max over (overlapping) windows of the last axis; the first of equals wins."""

    @staticmethod
    def forward(ctx, x, kernel, stride=None):
        stride = stride or kernel
        top, off = x.unfold(-1, kernel, stride).max(dim=-1)
        pos = off + torch.arange(top.size(-1), device=x.device) * stride
        row = torch.arange(top[..., 0].numel(), device=x.device)
        flat = pos + row.view(*top.shape[:-1], 1) * x.size(-1)
        ctx.save_for_backward(x, flat)
        return top

    @staticmethod
    def backward(ctx, grad_top):
        x, flat = ctx.saved_tensors
        grad_x = torch.zeros_like(x, memory_format=torch.contiguous_format)
        grad_x.reshape(-1).index_add_(0, flat.reshape(-1), grad_top.reshape(-1))
        return grad_x, None, None


class _BagMean(Function):
    @staticmethod
    def forward(ctx, weight, ids, pad):
        keep = (ids != pad).to(weight.dtype)
        count = keep.sum(1, keepdim=True).clamp(min=1)
        ctx.save_for_backward(ids, keep, count)
        ctx.vocab = weight.size(0)
        return (weight[ids] * keep.unsqueeze(-1)).sum(1) / count

    @staticmethod
    def backward(ctx, grad_bag):
        ids, keep, count = ctx.saved_tensors
        rows = (grad_bag / count).unsqueeze(1) * keep.unsqueeze(-1)
        grad_w = grad_bag.new_zeros(ctx.vocab, grad_bag.size(1))
        grad_w = grad_w.index_add(0, ids.reshape(-1), rows.flatten(0, 1))
        return grad_w, None, None


class TokenBag(nn.Module):
    """Mean embedding of the tokens of a row that are not padding."""

    def __init__(self, vocab, dim, padding_idx=0):
        super().__init__()
        self.padding_idx = padding_idx
        self.weight = nn.Parameter(torch.randn(vocab, dim))

    def forward(self, ids):
        return _BagMean.apply(self.weight, ids, self.padding_idx)


class MinimalGatedCell(Function):
    """f = sig(a + h Uf), n = tanh(b + (f h) Un), h' = (1 - f) h + f n.

    a and b are the input projections of the two gates, computed for all steps at once.
    """

    @staticmethod
    def forward(ctx, a, b, h, uf, un):
        f = torch.sigmoid(a + h @ uf)
        n = torch.tanh(b + (f * h) @ un)
        ctx.save_for_backward(a, b, h, uf, un)
        return (1 - f) * h + f * n

    @staticmethod
    def backward(ctx, g):
        a, b, h, uf, un = ctx.saved_tensors
        f = torch.sigmoid(a + h @ uf)
        fh = f * h
        n = torch.tanh(b + fh @ un)
        db = g * f * (1 - n * n)
        dfh = db @ un.t()
        da = (g * (n - h) + dfh * h) * f * (1 - f)
        dh = g * (1 - f) + dfh * f + da @ uf.t()
        return da, db, dh, h.t() @ da, fh.t() @ db


class PackedSwiGLU(Function):
    """silu(a) * b for a tensor that holds [a | b] along its last axis."""

    @staticmethod
    def forward(packed):
        if packed.size(-1) % 2:
            raise ValueError("last dimension must be even")
        a, b = packed.chunk(2, dim=-1)
        return F.silu(a) * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (packed,) = ctx.saved_tensors
        a, b = packed.chunk(2, dim=-1)
        sig = torch.sigmoid(a)
        da = grad * b * sig * (1 + a * (1 - sig))
        return torch.cat([da, grad * a * sig], dim=-1)


class _SoftRoundGrad(Function):
    @staticmethod
    def forward(ctx, grad, x, step, sharp):
        u = x / step
        th = torch.tanh(sharp * (u - u.round()))
        ctx.save_for_backward(grad, x)
        ctx.step, ctx.sharp = step, sharp
        return (
            grad * (1 - th * th) * ctx.sharp / (2 * torch.tanh(x.new_tensor(sharp / 2)))
        )

    @staticmethod
    def backward(ctx, gg):
        grad, x = ctx.saved_tensors
        u = x / ctx.step
        th = torch.tanh(ctx.sharp * (u - u.round()))
        slope = (
            (1 - th * th) * ctx.sharp / (2 * torch.tanh(x.new_tensor(ctx.sharp / 2)))
        )
        curve = -2 * th * slope * ctx.sharp / ctx.step
        return gg * slope, gg * grad * curve, None, None


class SoftQuantize(Function):
    """Differentiable rounding to multiples of step (DSQ); sharp sets how hard."""

    @staticmethod
    def forward(ctx, x, step=1.0, sharp=4.0):
        u = x / step
        r = u.round()
        soft = torch.tanh(sharp * (u - r)) / torch.tanh(x.new_tensor(sharp / 2))
        ctx.save_for_backward(x)
        ctx.step, ctx.sharp = step, sharp
        return step * (r + 0.5 * soft)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return _SoftRoundGrad.apply(grad, x, ctx.step, ctx.sharp), None, None
