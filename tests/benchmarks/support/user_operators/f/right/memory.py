"""Operators that keep little for the backward pass, and a few fused ones."""

import math
from typing import List, Optional

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class RecomputedMlp(torch.autograd.Function):
    """silu(x W1^T + b1) W2^T; the hidden layer is computed again in backward."""

    @staticmethod
    def forward(ctx, x, w1, b1, w2):
        assert x.dim() == 2, "flatten leading dimensions first"
        ctx.save_for_backward(x, w1, b1, w2)
        return F.silu(x @ w1.t() + b1) @ w2.t()

    @staticmethod
    def backward(ctx, grad):
        x, w1, b1, w2 = ctx.saved_tensors
        hidden = x @ w1.t() + b1
        sig = torch.sigmoid(hidden)
        grad_w2 = grad.t() @ (hidden * sig)
        grad_hidden = (grad @ w2) * sig * (1.0 + hidden * (1.0 - sig))
        return grad_hidden @ w1, grad_hidden.t() @ x, grad_hidden.sum(0), grad_w2


class FusedBiasDropout(torch.autograd.Function):
    """Dropout of x + bias with a keep mask drawn by the caller."""

    @staticmethod
    def forward(ctx, x, bias: Optional[Tensor], mask, p=0.5, training=True):
        if not 0.0 <= p < 1.0:
            raise ValueError("p must be in [0, 1)")
        if mask.dtype != torch.bool or mask.shape != x.shape:
            raise ValueError("mask must be boolean and of the shape of x")
        if bias is not None and bias.shape != x.shape[-1:]:
            raise ValueError("bias must match the last dimension of x")
        ctx.save_for_backward(mask)
        ctx.p, ctx.training = p, training
        y = x if bias is None else x + bias
        return y * mask / (1.0 - p) if training else y.clone()

    @staticmethod
    def backward(ctx, grad_y):
        (mask,) = ctx.saved_tensors
        grad_x = grad_y * mask / (1.0 - ctx.p) if ctx.training else grad_y
        grad_bias = None
        if ctx.needs_input_grad[1]:
            grad_bias = grad_x.reshape(-1, grad_x.size(-1)).sum(0)
        return grad_x, grad_bias, None, None, None


class FusedLinearXent(torch.autograd.Function):
    """Mean cross entropy of hidden @ weight^T, row chunk by row chunk.

    The gradients are made in forward so that the logits never live whole.
    """

    @staticmethod
    def forward(ctx, hidden, weight, target, ignore_index=-100, chunk=4):
        valid = target != ignore_index
        n_valid = max(int(valid.sum()), 1)
        grad_h = torch.zeros_like(hidden)
        grad_w = torch.zeros_like(weight)
        total = hidden.new_zeros(())
        for s in range(0, hidden.size(0), chunk):
            h, keep = hidden[s : s + chunk], valid[s : s + chunk]
            label = target[s : s + chunk].masked_fill(~keep, 0)[:, None]
            logp = torch.log_softmax(h @ weight.t(), dim=-1)
            total -= (logp.gather(1, label)[:, 0] * keep).sum()
            d = logp.exp()
            d.scatter_add_(1, label, -torch.ones_like(d[:, :1]))
            d *= keep[:, None]
            grad_h[s : s + chunk] = d @ weight
            grad_w += d.t() @ h
        ctx.save_for_backward(grad_h, grad_w)
        ctx.scale = 1.0 / n_valid
        return total / n_valid

    @staticmethod
    def backward(ctx, grad_loss):
        grad_h, grad_w = ctx.saved_tensors
        scale = grad_loss * ctx.scale
        return grad_h * scale, grad_w * scale, None, None, None


class WindowedFrames(torch.autograd.Function):
    """Overlapping windowed frames of (B, T) -> (B, n, size), frames kept as a view."""

    @staticmethod
    def forward(ctx, x, window, hop=2):
        size = window.numel()
        if x.dim() != 2 or window.dim() != 1 or x.size(1) < size:
            raise ValueError("expected x (B, T), window (size,) with T >= size")
        ctx.save_for_backward(x, window)
        ctx.hop = hop
        return x.unfold(1, size, hop) * window

    @staticmethod
    def backward(ctx, grad):
        x, window = ctx.saved_tensors
        b, n, size = grad.shape
        sb, st = x.stride()
        frames = x.as_strided((b, n, size), (sb, ctx.hop * st, st))
        grad_window = (grad * frames).sum((0, 1))
        start = torch.arange(n, device=x.device)[:, None] * ctx.hop
        index = (start + torch.arange(size, device=x.device)).reshape(-1)
        grad_x = torch.zeros_like(x).index_add(1, index, (grad * window).reshape(b, -1))
        return grad_x, grad_window, None


class PackedSoftmax(torch.autograd.Function):
    """Softmax over dim 0 inside every packed sequence; cu_seqlens = [0, l1, l1+l2, ...]."""

    @staticmethod
    def forward(ctx, scores: Tensor, cu_seqlens: List[int]) -> Tensor:
        if cu_seqlens[0] != 0 or cu_seqlens[-1] != scores.size(0):
            raise ValueError("cu_seqlens must run from 0 to the packed length")
        ctx.lengths = [b - a for a, b in zip(cu_seqlens[:-1], cu_seqlens[1:])]
        probs = torch.cat([s.softmax(0) for s in scores.split(ctx.lengths)])
        ctx.save_for_backward(probs)
        return probs

    @staticmethod
    def backward(ctx, grad: Tensor):
        (probs,) = ctx.saved_tensors
        gp = grad * probs
        sums = [s.sum(0, keepdim=True).expand_as(s) for s in gp.split(ctx.lengths)]
        return gp - probs * torch.cat(sums), None


class SerfActivation(torch.autograd.Function):
    """x * erf(softplus(x)), keeping only x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.erf(F.softplus(x))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        sp = F.softplus(x)
        bell = 2.0 / math.sqrt(math.pi) * torch.exp(-sp * sp)
        slope = torch.erf(sp) + x * bell * torch.sigmoid(x)
        return grad_output.mul(slope)


class ReversibleCoupling(torch.autograd.Function):
    """Additive coupling; the inputs are rebuilt from the outputs in backward."""

    @staticmethod
    def forward(ctx, x1, x2, wf, wg):
        y1 = x1 + torch.tanh(x2 @ wf)
        y2 = x2 + torch.tanh(y1 @ wg)
        ctx.save_for_backward(y1, y2, wf, wg)
        return y1, y2

    @staticmethod
    def backward(ctx, g1, g2):
        y1, y2, wf, wg = ctx.saved_tensors
        tg = torch.tanh(y1 @ wg)
        sg = g2 * (1.0 - tg * tg)
        g1 = g1 + sg @ wg.t()
        x2 = y2 - tg
        tf = torch.tanh(x2 @ wf)
        sf = g1 * (1.0 - tf * tf)
        grad_x2 = g2 + sf @ wf.t()
        return g1, grad_x2, x2.t() @ sf, y1.t() @ sg


class GatedKeep(torch.autograd.Function):
    """x * sigmoid(logit / temperature), saving the gate in place of the logits."""

    @staticmethod
    def forward(ctx, x, logit, temperature=1.0):
        gate = torch.sigmoid(logit / temperature)
        ctx.save_for_backward(x, gate.to(x.dtype))
        ctx.temperature = temperature
        return x * gate

    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        gate = gate.to(grad.dtype)
        grad_logit = grad * x * gate * (1.0 - gate) / ctx.temperature
        return grad * gate, grad_logit, None


class NumpyRunningMax(torch.autograd.Function):
    """Running maximum along the last axis of (N, L); keeps integer positions only."""

    @staticmethod
    def forward(ctx, x):
        if x.dim() != 2:
            raise ValueError("expected a (N, L) tensor")
        values = x.detach().cpu().numpy()
        out = np.maximum.accumulate(values, axis=1)
        fresh = np.ones(values.shape, dtype=bool)
        fresh[:, 1:] = values[:, 1:] > out[:, :-1]
        where = np.where(fresh, np.arange(values.shape[1]), 0)
        ctx.where = np.maximum.accumulate(where, axis=1)
        return torch.from_numpy(out).to(x.device)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        g = grad_out.cpu().numpy()
        grad = np.zeros_like(g)
        rows = np.arange(g.shape[0])[:, None]
        np.add.at(grad, (rows, ctx.where), g)
        return torch.from_numpy(grad).to(grad_out.device)


class _StatNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, mean, var, eps, training):
        if training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
        ctx.save_for_backward(x, weight, mean, var)
        ctx.eps, ctx.training = eps, training
        return (x - mean) * torch.rsqrt(var + eps) * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight, mean, var = ctx.saved_tensors
        if ctx.training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
        rstd = torch.rsqrt(var + ctx.eps)
        xhat = (x - mean) * rstd
        gx = grad * weight
        through_stats = gx.mean(0) + xhat * (gx * xhat).mean(0)
        gx = gx - through_stats if ctx.training else gx
        return gx * rstd, (grad * xhat).sum(0), None, None, None, None


class FrozenStatNorm(nn.Module):
    """Feature normalisation of (N, D) with running statistics in eval mode."""

    def __init__(self, dim, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(dim))
        self.register_buffer("running_mean", torch.zeros(dim))
        self.register_buffer("running_var", torch.ones(dim))

    def forward(self, x):
        assert x.dim() == 2
        if self.training:
            with torch.no_grad():
                self.running_mean.lerp_(x.mean(0), self.momentum)
                self.running_var.lerp_(x.var(0), self.momentum)
        return _StatNormFn.apply(
            x, self.weight, self.running_mean, self.running_var, self.eps, self.training
        )
