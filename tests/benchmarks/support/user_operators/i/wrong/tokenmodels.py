"""Sequence layers and losses with hand-written derivatives."""

from typing import Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class PartialRotary(Function):
    """Rotates the first ``rotary_dim`` channels by position; the others pass through.

    Args:
        x: (batch, length, heads, dim).
        positions: (length,) or (batch, length) integers.
        rotary_dim: even, at most dim.
        base: the longest wavelength is about ``2 pi base``.
        interleaved: pairs are neighbours (True) or lie half of rotary_dim apart (False).
    """

    @staticmethod
    def _turn(x, angle, interleaved):
        rotary_dim = 2 * angle.shape[-1]
        cos, sin = angle.cos(), angle.sin()
        head, tail = x[..., :rotary_dim], x[..., rotary_dim:]
        if interleaved:
            a, b = head[..., 0::2], head[..., 1::2]
        else:
            a, b = head.chunk(2, dim=-1)
        first, second = a * cos - b * sin, a * sin + b * cos
        if interleaved:
            turned = torch.stack((first, second), -1).flatten(-2)
        else:
            turned = torch.cat((first, second), -1)
        return torch.cat((turned, tail), -1)

    @staticmethod
    def _angles(positions, rotary_dim, base, dtype):
        power = torch.arange(0, rotary_dim, 2, dtype=dtype, device=positions.device) / rotary_dim
        angle = positions.to(dtype).unsqueeze(-1) * base**-power
        return angle.unsqueeze(-2)

    @staticmethod
    def forward(x, positions, rotary_dim, base=10000.0, interleaved=False):
        if rotary_dim % 2 or rotary_dim > x.shape[-1]:
            raise ValueError("rotary_dim must be even and at most the width of x")
        if positions.is_floating_point():
            raise TypeError("positions are integers")
        angle = PartialRotary._angles(positions, rotary_dim, base, x.dtype)
        return PartialRotary._turn(x, angle, interleaved)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, positions, ctx.rotary_dim, ctx.base, ctx.interleaved = inputs
        ctx.save_for_backward(positions)
        ctx.save_for_forward(positions)
        ctx.dtype = x.dtype
        ctx.width = x.shape[-1]

    @staticmethod
    def backward(ctx, grad):
        (positions,) = ctx.saved_tensors
        angle = PartialRotary._angles(positions, ctx.rotary_dim, ctx.base, ctx.dtype)
        d_x = PartialRotary._turn(grad[..., : ctx.rotary_dim], -angle, ctx.interleaved)
        d_x = F.pad(d_x, (0, ctx.width - ctx.rotary_dim))
        return d_x, None, None, None, None

    @staticmethod
    def jvp(ctx, t_x, *_):
        (positions,) = ctx.saved_tensors
        angle = PartialRotary._angles(positions, ctx.rotary_dim, ctx.base, ctx.dtype)
        return PartialRotary._turn(t_x, angle, ctx.interleaved)


class CausalFeatureAttention(Function):
    @staticmethod
    def _feature(x):
        return F.elu(x) + 1

    @staticmethod
    def forward(ctx, query, key, value, eps=1e-6):
        if query.shape != key.shape or query.shape[:2] != value.shape[:2]:
            raise ValueError("query and key (batch, length, dim), value (batch, length, width)")
        fq, fk = CausalFeatureAttention._feature(query), CausalFeatureAttention._feature(key)
        memory = query.new_zeros(query.shape[0], query.shape[2], value.shape[2])
        mass = query.new_zeros(query.shape[0], query.shape[2])
        out = []
        for t in range(query.shape[1]):
            memory = memory + fk[:, t].unsqueeze(2) * value[:, t].unsqueeze(1)
            mass = mass + fk[:, t]
            weight = (fq[:, t] * mass).sum(1, keepdim=True) + eps
            out.append(torch.einsum("bd,bde->be", fq[:, t], memory) / weight)
        out = torch.stack(out, 1)
        ctx.save_for_backward(query, key, value, out)
        ctx.eps = eps
        return out

    @staticmethod
    def backward(ctx, grad):
        query, key, value, out = ctx.saved_tensors
        fq, fk = CausalFeatureAttention._feature(query), CausalFeatureAttention._feature(key)
        mass = fk.cumsum(1)
        memory = (fk.unsqueeze(3) * value.unsqueeze(2)).cumsum(1)
        weight = (fq * mass).sum(2, keepdim=True) + ctx.eps
        g_top = grad / weight
        g_weight = -(g_top * out).sum(2, keepdim=True)
        d_fq = torch.einsum("btde,bte->btd", memory, g_top) + g_weight * mass
        pull = torch.zeros_like(memory[:, 0])
        pull_mass = torch.zeros_like(mass[:, 0])
        d_fk, d_value = [], []
        for t in range(query.shape[1] - 1, -1, -1):
            pull = pull + fq[:, t].unsqueeze(2) * g_top[:, t].unsqueeze(1)
            d_fk.append(torch.einsum("bde,be->bd", pull, value[:, t]) + pull_mass)
            pull_mass = pull_mass + fq[:, t] * g_weight[:, t]
            d_value.append(torch.einsum("bde,bd->be", pull, fk[:, t]))
        d_fk = torch.stack(d_fk[::-1], 1)
        need = ctx.needs_input_grad
        return (
            d_fq * query.clamp(max=0).exp() if need[0] else None,
            d_fk * key.clamp(max=0).exp() if need[1] else None,
            torch.stack(d_value[::-1], 1) if need[2] else None,
            None,
        )


class GatedStateScan(Function):
    @staticmethod
    def forward(
        ctx,
        x: Tensor,
        decay: Tensor,
        write: Tensor,
        read: Tensor,
        start: Optional[Tensor] = None,
    ) -> Tuple[Tensor, Tensor]:
        if x.shape != decay.shape or write.shape != read.shape:
            raise ValueError("x matches decay, and write matches read")
        batch, length, dim = x.shape
        h = x.new_zeros(batch, dim, write.shape[2]) if start is None else start
        states, y = [h], []
        for t in range(length):
            h = decay[:, t, :, None] * h + x[:, t, :, None] * write[:, t, None, :]
            states.append(h)
            y.append((h * read[:, t, None, :]).sum(2))
        ctx.save_for_backward(x, decay, write, read, torch.stack(states, 1))
        ctx.started = start is not None
        ctx.set_materialize_grads(False)
        return torch.stack(y, 1), h.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_y, grad_last):
        x, decay, write, read, states = ctx.saved_tensors
        carry = torch.zeros_like(states[:, 0])
        d_x, d_decay = torch.empty_like(x), torch.empty_like(decay)
        d_write, d_read = torch.empty_like(write), torch.zeros_like(read)
        for t in range(x.shape[1] - 1, -1, -1):
            if grad_y is not None:
                carry = carry + grad_y[:, t, :, None] * read[:, t, None, :]
                d_read[:, t] = (grad_y[:, t, :, None] * states[:, t + 1]).sum(1)
            d_x[:, t] = (carry * write[:, t, None, :]).sum(2)
            d_write[:, t] = (carry * x[:, t, :, None]).sum(1)
            d_decay[:, t] = (carry * states[:, t]).sum(2)
            carry = carry * decay[:, t, :, None]
        return d_x, d_decay, d_write, d_read, carry if ctx.started else None


class SmoothedCrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, targets, smoothing=0.1, ignore_index=-100, reduction="mean"):
        if reduction not in ("mean", "sum"):
            raise ValueError("reduction must be mean or sum")
        if not 0 <= smoothing < 1:
            raise ValueError("smoothing must lie in [0, 1)")
        kept = targets != ignore_index
        shifted = logits.sub_(logits.amax(1, keepdim=True))
        log_p = shifted - shifted.exp().sum(1, keepdim=True).log()
        picked = log_p.gather(1, targets.where(kept, torch.zeros_like(targets)).unsqueeze(1))
        loss = -(1 - smoothing) * picked.squeeze(1) - smoothing * log_p.mean(1)
        ctx.save_for_backward(logits, targets, kept)
        ctx.smoothing = smoothing
        ctx.scale = 1.0 / max(int(kept.sum()), 1) if reduction == "mean" else 1.0
        return loss.masked_fill(~kept, 0.0).sum() * ctx.scale

    @staticmethod
    def backward(ctx, grad):
        logits, targets, kept = ctx.saved_tensors
        vocabulary = logits.shape[1]
        label = targets.where(kept, torch.zeros_like(targets)).unsqueeze(1)
        wanted = torch.full_like(logits, ctx.smoothing / vocabulary)
        wanted = wanted.scatter_add(1, label, torch.full_like(logits[:, :1], 1 - ctx.smoothing))
        d_logits = (torch.softmax(logits, 1) - wanted) * kept.unsqueeze(1)
        return grad * ctx.scale * d_logits, None, None, None, None


class GatedRmsNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, gate=None, eps=1e-6):
        if weight.shape != x.shape[-1:]:
            raise ValueError("weight must have the width of x")
        if gate is not None and gate.shape != x.shape:
            raise ValueError("gate must be shaped like x")
        out = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight
        if gate is not None:
            out = out * F.silu(gate)
        ctx.save_for_backward(x, weight, gate)
        ctx.eps = eps
        return out

    @staticmethod
    def _norm_backward(x, weight, scale, grad):
        unit = x * scale
        d_unit = grad * weight
        d_x = scale * (d_unit - unit * (d_unit * unit).mean(-1, keepdim=True))
        d_weight = (grad * unit).reshape(-1, x.shape[-1]).sum(0)
        return d_x, d_weight

    @staticmethod
    def backward(ctx, grad):
        x, weight, gate = ctx.saved_tensors
        scale = (x.square().mean(-1, keepdim=True) + ctx.eps).rsqrt()
        if gate is None:
            d_x, d_weight = GatedRmsNorm._norm_backward(x, weight, scale, grad)
            return d_x, d_weight, None
        half = torch.sigmoid(gate)
        d_x, d_weight = GatedRmsNorm._norm_backward(x, weight, scale, grad * gate * half)
        d_gate = None
        if ctx.needs_input_grad[2]:
            d_gate = grad * x * scale * weight * half * (1 + gate * (1 - half))
        return d_x, d_weight, d_gate, None


class DistanceBiasSoftmax(Function):
    """Attention weights from scores with a per-head penalty on distance."""

    @staticmethod
    def _lag(scores):
        queries, keys = scores.shape[-2:]
        q = torch.arange(keys - queries, keys, device=scores.device)
        return q.unsqueeze(1) - torch.arange(keys, device=scores.device)

    @staticmethod
    def forward(ctx, scores, slopes, causal=True):
        if slopes.shape != scores.shape[1:2]:
            raise ValueError("one slope per head")
        if scores.shape[-2] > scores.shape[-1]:
            raise ValueError("more queries than keys")
        lag = DistanceBiasSoftmax._lag(scores)
        biased = scores - slopes.view(-1, 1, 1) * lag.abs()
        if causal:
            biased = biased.masked_fill(lag < 0, float("-inf"))
        weight = torch.softmax(biased, -1)
        ctx.save_for_backward(weight)
        return weight

    @staticmethod
    def backward(ctx, grad):
        (weight,) = ctx.saved_tensors
        d_scores = weight * (grad - (weight * grad).sum(-1, keepdim=True))
        d_slopes = None
        if ctx.needs_input_grad[1]:
            lag = DistanceBiasSoftmax._lag(weight).to(weight.dtype)
            d_slopes = -(d_scores * lag).sum((0, 2, 3))
        return d_scores if ctx.needs_input_grad[0] else None, d_slopes, None


class CausalChannelConv(Function):
    """Causal convolution over time of each channel (batch, length, dim) by its own taps."""

    @staticmethod
    def _back(x, steps):
        if steps >= x.shape[1]:
            return torch.zeros_like(x)
        return F.pad(x, (0, 0, steps, 0))[:, : x.shape[1]]

    @staticmethod
    def _forth(x, steps):
        if steps >= x.shape[1]:
            return torch.zeros_like(x)
        return F.pad(x, (0, 0, 0, steps))[:, steps:]

    @staticmethod
    def forward(ctx, x, taps, bias=None, dilation=1):
        if taps.dim() != 2 or taps.shape[1] != x.shape[2]:
            raise ValueError("taps must be (count, dim)")
        if dilation < 1:
            raise ValueError("dilation must be at least one")
        out = torch.zeros_like(x)
        for k in range(taps.shape[0]):
            out += CausalChannelConv._back(x, k * dilation) * taps[k]
        if bias is not None:
            out += bias
        ctx.save_for_backward(x, taps)
        ctx.dilation = dilation
        ctx.biased = bias is not None
        return out

    @staticmethod
    def backward(ctx, grad):
        x, taps = ctx.saved_tensors
        d_x = d_taps = d_bias = None
        if ctx.needs_input_grad[0]:
            d_x = sum(
                CausalChannelConv._forth(grad, k * ctx.dilation) * taps[k]
                for k in range(taps.shape[0])
            )
        if ctx.needs_input_grad[1]:
            rows = []
            for k in range(taps.shape[0]):
                shifted = CausalChannelConv._back(x, k)
                rows.append((grad * shifted).sum((0, 1)))
            d_taps = torch.stack(rows)
        if ctx.biased and ctx.needs_input_grad[2]:
            d_bias = grad.sum((0, 1))
        return d_x, d_taps, d_bias, None


class TopKGate(Function):
    """Routing weights of the ``k`` best experts per token, and which they are.

    logits: (tokens, experts). The weights are softmax probabilities over all experts;
    with ``renormalise`` they are divided by their sum. Returns weights (tokens, k) and
    integer experts (tokens, k), without gradient.
    """

    @staticmethod
    def forward(ctx, logits, k=2, renormalise=True):
        if not 1 <= k <= logits.shape[1]:
            raise ValueError("k must lie between one and the number of experts")
        prob = torch.softmax(logits, 1)
        top, expert = prob.topk(k, dim=1)
        total = top.sum(1, keepdim=True)
        ctx.save_for_backward(prob, expert)
        ctx.renormalise = renormalise
        ctx.mark_non_differentiable(expert)
        return (top / total if renormalise else top), expert

    @staticmethod
    def backward(ctx, grad, _):
        prob, expert = ctx.saved_tensors
        top = prob.gather(1, expert)
        if ctx.renormalise:
            share = top / top.sum(1, keepdim=True)
            d_top = share * (grad - (grad * share).sum(1, keepdim=True))
            return torch.zeros_like(prob).scatter(1, expert, d_top), None, None
        inner = (grad * top).sum(1, keepdim=True)
        d_logits = torch.zeros_like(prob).scatter(1, expert, grad * top) - prob * inner
        return d_logits, None, None


class _TiledHead(Function):
    @staticmethod
    def forward(ctx, hidden, weight, targets, tile, ignore_index):
        kept = targets != ignore_index
        count = max(int(kept.sum()), 1)
        loss = hidden.new_zeros(())
        d_hidden, d_weight = torch.zeros_like(hidden), torch.zeros_like(weight)
        for begin in range(0, len(hidden), tile):
            rows = slice(begin, begin + tile)
            h, mask = hidden[rows], kept[rows]
            label = targets[rows].masked_fill(~mask, 0).unsqueeze(1)
            log_p = torch.log_softmax(h @ weight.t(), 1)
            loss = loss - (log_p.gather(1, label).squeeze(1) * mask).sum() / count
            part = log_p.exp().scatter_add(1, label, -torch.ones_like(log_p[:, :1]))
            part = part * mask.unsqueeze(1) / count
            d_hidden[rows] = part @ weight
            d_weight += part.t() @ h
        ctx.save_for_backward(d_hidden, d_weight)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d_hidden, d_weight = ctx.saved_tensors
        return d_hidden, d_weight, None, None, None


class TiledHeadLoss(nn.Module):
    """Language-model loss that never holds the logits of all tokens at once.

    Both gradients are prepared in the forward pass, tile by tile; differentiable once.
    """

    def __init__(self, tile: int = 512, ignore_index: int = -100):
        super().__init__()
        if tile < 1:
            raise ValueError("tile must be at least one")
        self.tile = tile
        self.ignore_index = ignore_index

    def forward(self, hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        return _TiledHead.apply(hidden, weight, targets, self.tile, self.ignore_index)


class BalancedMixer(nn.Module):
    def __init__(self, rounds=4, temperature=1.0):
        super().__init__()
        if rounds < 1:
            raise ValueError("rounds must be at least one")
        self.rounds = rounds
        self.temperature = temperature

    def forward(self, scores, values):
        if scores.shape[-1] != scores.shape[-2]:
            raise ValueError("scores must be square")
        log_w = scores / self.temperature
        with torch.no_grad():
            row = torch.zeros_like(log_w[..., :1])
            for _ in range(self.rounds):
                column = torch.logsumexp(log_w - row, -2, keepdim=True)
                row = torch.logsumexp(log_w - column, -1, keepdim=True)
        return (log_w - row - column).exp() @ values
