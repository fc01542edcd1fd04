"""Differentiable models and encoders for tables."""

import math

import torch
from torch import nn
from torch.autograd import Function


def _leaf_pairs(gate, depth):
    # bits of every leaf, (leaves, depth); bit 1 takes the gate, bit 0 its complement
    leaf = torch.arange(2**depth, device=gate.device)
    bits = (leaf[:, None] >> torch.arange(depth, device=gate.device)) & 1
    bits = bits.to(torch.bool)
    return bits, torch.where(bits, gate[:, None, :], 1 - gate[:, None, :])


class ObliviousTree(Function):
    """A soft oblivious decision tree.

    Args:
        x: (N, F) rows.
        select: (D, F) feature mixtures, one per level.
        threshold: (D,) split points.
        leaves: (2 ** D, K) responses; level d is bit d of the leaf number.
        temperature: softness of the splits.
    """

    @staticmethod
    def forward(ctx, x, select, threshold, leaves, temperature=1.0):
        depth = threshold.shape[0]
        if leaves.shape[0] != 2**depth or select.shape[0] != depth:
            raise ValueError("select, threshold and leaves disagree on the depth")
        if temperature <= 0:
            raise ValueError("temperature must be positive")
        gate = torch.sigmoid((x @ select.T - threshold) / temperature)
        _, pairs = _leaf_pairs(gate, depth)
        ctx.save_for_backward(x, select, threshold, leaves)
        ctx.temperature = temperature
        return pairs.prod(2) @ leaves

    @staticmethod
    def backward(ctx, grad_out):
        x, select, threshold, leaves = ctx.saved_tensors
        depth = threshold.shape[0]
        gate = torch.sigmoid((x @ select.T - threshold) / ctx.temperature)
        bits, pairs = _leaf_pairs(gate, depth)
        reach = grad_out @ leaves.T
        grad_gate = []
        for level in range(depth):
            rest = torch.cat((pairs[:, :, :level], pairs[:, :, level + 1 :]), 2).prod(2)
            sign = torch.where(bits[:, level], 1.0, -1.0).to(x.dtype)
            grad_gate.append((reach * rest) @ sign)
        grad_gate = torch.stack(grad_gate, 1)
        grad_split = grad_gate * gate * (1 - gate) / ctx.temperature
        grad_leaves = pairs.prod(2).T @ grad_out if ctx.needs_input_grad[3] else None
        return grad_split @ select, grad_split.T @ x, -grad_split.sum(0), grad_leaves, None


class ScaledSimplex(Function):
    """Euclidean projection of the slices of x along dim onto {p >= 0, sum p = radius}.

    radius is positive and is a scalar tensor or has the shape of x without dim.
    """

    @staticmethod
    def forward(x, radius, dim=-1):
        if bool((radius <= 0).any()):
            raise ValueError("radius must be positive")
        moved = x.movedim(dim, -1)
        r = radius.unsqueeze(-1) if radius.dim() else radius
        ranked = moved.sort(-1, descending=True).values
        rank = torch.arange(1, moved.shape[-1] + 1, device=x.device)
        excess = ranked.cumsum(-1) - r
        size = (rank * ranked > excess).sum(-1, keepdim=True)
        level = excess.gather(-1, size - 1) / size
        return (moved - level).clamp_min(0).movedim(-1, dim)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, radius, ctx.dim = inputs
        ctx.radius_shape = radius.shape
        support = output > 0
        ctx.save_for_backward(support)
        ctx.save_for_forward(support)

    @staticmethod
    def backward(ctx, grad):
        (support,) = ctx.saved_tensors
        dim = ctx.dim
        inside = torch.where(support, grad, grad.new_zeros(()))
        mean = inside.sum(dim, keepdim=True) / support.sum(dim, keepdim=True)
        grad_x = torch.where(support, grad - mean, grad.new_zeros(()))
        return grad_x, mean.squeeze(dim).sum_to_size(ctx.radius_shape), None

    @staticmethod
    def jvp(ctx, dx, dradius, _):
        (support,) = ctx.saved_tensors
        dim = ctx.dim
        count = support.sum(dim, keepdim=True)
        out = 0.0
        if dx is not None:
            inside = torch.where(support, dx, dx.new_zeros(()))
            out = inside - support * inside.sum(dim, keepdim=True) / count
        if dradius is not None:
            shift = dradius.unsqueeze(dim) if dradius.dim() else dradius
            out = out + support * shift / count
        return out


class TargetEncode(Function):
    @staticmethod
    def forward(ctx, target, category, prior, strength=1.0, leave_one_out=False, n_category=None):
        if strength <= 0:
            raise ValueError("strength must be positive")
        if category.dtype != torch.long or category.shape != target.shape:
            raise ValueError("category must be int64 with the shape of target")
        if prior.dim() != 0:
            raise ValueError("prior must be a scalar tensor")
        n_category = int(category.max()) + 1 if n_category is None else n_category
        total = target.new_zeros(n_category).index_add_(0, category, target)
        count = torch.bincount(category, minlength=n_category).to(target.dtype)
        top, bottom = total[category], count[category]
        if leave_one_out:
            top, bottom = top - target, bottom - 1
        bottom = bottom + strength
        ctx.save_for_backward(category, bottom)
        ctx.strength, ctx.leave_one_out, ctx.n_category = strength, leave_one_out, n_category
        return (top + strength * prior) / bottom

    @staticmethod
    def backward(ctx, grad):
        category, bottom = ctx.saved_tensors
        scaled = grad / bottom
        pooled = scaled.new_zeros(ctx.n_category).index_add(0, category, scaled)
        grad_target = pooled[category]
        if ctx.leave_one_out:
            grad_target = grad_target - scaled
        return grad_target, None, ctx.strength * scaled.sum(), None, None, None


class SparseFmInteraction(Function):
    """Pairwise factorisation-machine term of sparse rows.

    Row b holds the entries offsets[b]:offsets[b + 1] (the last one runs to the end) of values and
    indices, both (nnz,). table is (V, D). Gives sum_{i<j} v_i v_j <e_i, e_j> per row.
    """

    @staticmethod
    def forward(ctx, values, indices, offsets, table):
        if int(offsets[0]) != 0 or bool((offsets.diff() < 0).any()):
            raise ValueError("offsets must start at zero and not decrease")
        if values.shape != indices.shape:
            raise ValueError("one index per value is needed")
        ends = torch.cat((offsets[1:], offsets.new_tensor([values.shape[0]])))
        row = torch.repeat_interleave(ends - offsets)
        scaled = values[:, None] * table[indices]
        pooled = scaled.new_zeros(offsets.shape[0], table.shape[1]).index_add_(0, row, scaled)
        own = scaled.new_zeros(offsets.shape[0]).index_add_(0, row, scaled.square().sum(1))
        ctx.save_for_backward(values, indices, row, table)
        ctx.rows = offsets.shape[0]
        return (pooled.square().sum(1) - own) / 2

    @staticmethod
    def backward(ctx, grad):
        values, indices, row, table = ctx.saved_tensors
        entry = table[indices]
        scaled = values[:, None] * entry
        pooled = scaled.new_zeros(ctx.rows, table.shape[1]).index_add(0, row, scaled)
        others = (pooled[row] - scaled) * grad[row, None]
        grad_values = (others * entry).sum(1) if ctx.needs_input_grad[0] else None
        grad_table = None
        if ctx.needs_input_grad[3]:
            grad_table = torch.zeros_like(table).index_add(0, indices, values[:, None] * others)
        return grad_values, None, None, grad_table


class PinballHuber(Function):
    """Smoothed quantile loss of pred (N, Q) against target (N,) at the levels taus (Q,)."""

    @staticmethod
    def _pieces(pred, target, taus, delta):
        miss = target[:, None] - pred
        side = torch.where(miss > 0, taus, 1 - taus)
        near = miss.abs() <= delta
        value = torch.where(near, miss.square() / (2 * delta), miss.abs() - delta / 2)
        slope = torch.where(near, miss / delta, miss.sign())
        return side * value, side * slope

    @staticmethod
    def forward(ctx, pred, target, taus, delta=0.5, weight=None, reduction="mean"):
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"unknown reduction {reduction!r}")
        if pred.shape != (target.shape[0], taus.shape[0]):
            raise ValueError("pred must be (rows, levels)")
        if ctx.needs_input_grad[2]:
            raise ValueError("taus cannot require a gradient")
        loss, _ = PinballHuber._pieces(pred, target, taus, delta)
        ctx.save_for_backward(pred, target, taus, weight)
        ctx.delta, ctx.reduction = delta, reduction
        if weight is not None:
            loss = loss * weight[:, None]
        if reduction == "none":
            return loss
        if reduction == "sum":
            return loss.sum()
        mass = pred.shape[0] if weight is None else weight.sum()
        return loss.sum() / (mass * pred.shape[1])

    @staticmethod
    def backward(ctx, grad):
        pred, target, taus, weight = ctx.saved_tensors
        loss, slope = PinballHuber._pieces(pred, target, taus, ctx.delta)
        levels = pred.shape[1]
        grad_weight = None
        if weight is not None:
            row = (grad * loss).sum(1)
            if ctx.reduction == "mean":
                average = (weight * row).sum() / weight.sum()
                row = (row - average) / (levels * weight.sum())
            grad_weight = row
            slope = slope * weight[:, None]
        if ctx.reduction == "mean":
            mass = pred.shape[0] if weight is None else weight.sum()
            grad = grad / (mass * levels)
        step = grad * slope
        return -step, step.sum(1), None, None, grad_weight, None


def _pool_blocks(y, w):
    blocks = []
    for value, mass in zip(y.tolist(), w.tolist(), strict=True):
        blocks.append([value, mass, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            value, mass, size = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + value * mass) / (last[1] + mass)
            last[1] += mass
            last[2] += size
    sizes = torch.tensor([block[2] for block in blocks], device=y.device)
    return torch.repeat_interleave(sizes), len(blocks)


class WeightedIsotonic(Function):
    @staticmethod
    def forward(ctx, y, w):
        if y.dim() != 1 or y.shape != w.shape:
            raise ValueError("y and w must be vectors of one length")
        if bool((w <= 0).any()):
            raise ValueError("weights must be positive")
        block, ctx.count = _pool_blocks(y, w)
        ctx.save_for_backward(y, w, block)
        mass = w.new_zeros(ctx.count).index_add(0, block, w)
        return (y.new_zeros(ctx.count).index_add(0, block, w * y) / mass)[block]

    @staticmethod
    def backward(ctx, grad):
        y, w, block = ctx.saved_tensors
        mass = w.new_zeros(ctx.count).index_add(0, block, w)
        level = y.new_zeros(ctx.count).index_add(0, block, w * y) / mass
        pooled = grad.new_zeros(ctx.count).index_add(0, block, grad) / mass
        return w * pooled[block], (y - level[block]) * pooled[block]


class _ChunkStandardize(Function):
    @staticmethod
    def forward(ctx, x, size, eps):
        ctx.save_for_backward(x)
        ctx.size, ctx.eps = size, eps
        parts = []
        for part in x.split(size):
            centred = part - part.mean(0)
            parts.append(centred / (centred.square().mean(0) + eps).sqrt())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        parts = []
        for part, g in zip(x.split(ctx.size), grad.split(ctx.size), strict=True):
            rows = part.shape[0]
            centred = part - part.mean(0)
            scale = (centred.square().mean(0) + ctx.eps).sqrt()
            unit = centred / scale
            shift = g.sum(0) / rows
            tilt = (g * unit).sum(0) / rows
            parts.append((g - shift - unit * tilt) / scale)
        return torch.cat(parts), None, None


class GhostNorm(nn.Module):
    """Batch normalisation of (N, F) rows in virtual batches of ``ghost`` rows."""

    def __init__(self, features, ghost=16, eps=1e-5, momentum=0.1, affine=True):
        super().__init__()
        self.ghost, self.eps, self.momentum = ghost, eps, momentum
        self.scale = nn.Parameter(torch.ones(features)) if affine else None
        self.shift = nn.Parameter(torch.zeros(features)) if affine else None
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        if x.dim() != 2:
            raise ValueError("x must be (rows, features)")
        if self.training:
            out = _ChunkStandardize.apply(x, self.ghost, self.eps)
            with torch.no_grad():
                self.running_mean.lerp_(x.mean(0).to(self.running_mean), self.momentum)
                spread = x.var(0, unbiased=False).to(self.running_var)
                self.running_var.lerp_(spread, self.momentum)
        else:
            out = (x - self.running_mean) / (self.running_var + self.eps).sqrt()
        return out if self.scale is None else out * self.scale + self.shift


class _SpdSolve(Function):
    @staticmethod
    def forward(ctx, gram, rhs, ridge):
        eye = torch.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
        chol = torch.linalg.cholesky(gram + ridge * eye)
        out = torch.cholesky_solve(rhs, chol)
        ctx.save_for_backward(gram, out)
        ctx.ridge = ridge
        return out

    @staticmethod
    def backward(ctx, grad):
        gram, out = ctx.saved_tensors
        pulled = _SpdSolve.apply(gram, grad, ctx.ridge)
        return -pulled @ out.T, pulled, None


class RidgeReadout(nn.Module):
    """Kernel ridge regression from (x_train, y_train) to predictions at x_query."""

    def __init__(self, features: int, ridge: float = 1e-2, lengthscale: float = 1.0):
        super().__init__()
        self.log_scale = nn.Parameter(torch.full((features,), math.log(lengthscale)))
        self.ridge = ridge

    def kernel(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        gap = (a[:, None] - b[None]) / self.log_scale.exp()
        return (-0.5 * gap.square().sum(2)).exp()

    def forward(self, x_train, y_train, x_query):
        if y_train.dim() != 2:
            raise ValueError("y_train must be (rows, outputs)")
        alpha = _SpdSolve.apply(self.kernel(x_train, x_train), y_train, self.ridge)
        return self.kernel(x_query, x_train) @ alpha


class DecayImpute(Function):
    """Fill missing entries (NaN) of a series by decaying from the last value to the mean.

    series (T, F), decay (F,) non-negative, mean (F,), times (T,) increasing or None for unit
    steps. Entries before the first observation become the mean. Returns the filled series and
    the mask of observed entries.
    """

    @staticmethod
    def _last(series, times):
        seen = ~series.isnan()
        row = torch.arange(series.shape[0], device=series.device)[:, None]
        last = torch.where(seen, row, -1).cummax(0).values
        known = last >= 0
        last = last.clamp_min(0)
        if times is None:
            gap = (row - last).to(series.dtype)
        else:
            gap = times[:, None] - times[last]
        return seen, known, last, gap

    @staticmethod
    def forward(ctx, series, decay, mean, times=None):
        if decay.shape != series.shape[1:] or mean.shape != series.shape[1:]:
            raise ValueError("decay and mean must hold one value per column")
        if bool((decay < 0).any()):
            raise ValueError("decay must not be negative")
        if times is not None and times.requires_grad:
            raise ValueError("times cannot require a gradient")
        seen, known, last, gap = DecayImpute._last(series, times)
        keep = torch.where(known, (-decay * gap).exp(), torch.zeros_like(gap))
        past = series.nan_to_num(0.0).gather(0, last)
        filled = torch.where(seen, series, keep * past + (1 - keep) * mean)
        ctx.save_for_backward(series, decay, mean, times)
        ctx.mark_non_differentiable(seen)
        return filled, seen

    @staticmethod
    def backward(ctx, grad, _grad_seen):
        series, decay, mean, times = ctx.saved_tensors
        seen, known, last, gap = DecayImpute._last(series, times)
        keep = torch.where(known, (-decay * gap).exp(), torch.zeros_like(gap))
        past = series.nan_to_num(0.0).gather(0, last)
        missing = torch.where(seen, torch.zeros_like(grad), grad)
        direct = grad - missing
        carried = torch.zeros_like(grad).scatter_add(0, last, missing * keep)
        grad_decay = -(missing * gap * keep * (past - mean)).sum(0)
        grad_mean = (missing * (1 - keep)).sum(0)
        return direct + carried, grad_decay, grad_mean, None


def _ties(time, event):
    out = []
    for moment in time[event].unique():
        out.append((time >= moment, event & (time == moment)))
    return out


def _hazard(risk, at_risk):
    top = risk[at_risk].detach().max()
    return top, (risk - top).masked_fill(~at_risk, -math.inf).exp()


class CoxLoss(Function):
    """Negative partial log-likelihood of a proportional hazards model.

    Args:
        risk: (N,) log risks.
        time: (N,) follow-up times.
        event: (N,) bool, whether the event was seen.
        ties: "efron" or "breslow".
        reduction: "sum" or "mean" (over events).
    """

    @staticmethod
    def forward(ctx, risk, time, event, ties="efron", reduction="sum"):
        if ties not in ("efron", "breslow"):
            raise ValueError(f"unknown ties {ties!r}")
        if reduction not in ("sum", "mean"):
            raise ValueError(f"unknown reduction {reduction!r}")
        if event.dtype != torch.bool:
            raise TypeError("event must be bool")
        loss = risk.new_zeros(())
        for at_risk, died in _ties(time, event):
            count = int(died.sum())
            top, hazard = _hazard(risk, at_risk)
            everyone, dying = hazard.sum(), hazard[died].sum()
            for step in range(count):
                part = step / count if ties == "efron" else 0.0
                loss = loss + (everyone - part * dying).log()
            loss = loss - (risk[died] - top).sum()
        ctx.save_for_backward(risk, time, event)
        ctx.ties = ties
        ctx.scale = 1.0 / max(int(event.sum()), 1) if reduction == "mean" else 1.0
        return loss * ctx.scale

    @staticmethod
    def backward(ctx, grad):
        risk, time, event = ctx.saved_tensors
        grad_risk = torch.zeros_like(risk)
        for at_risk, died in _ties(time, event):
            count = int(died.sum())
            _, hazard = _hazard(risk, at_risk)
            everyone, dying = hazard.sum(), hazard[died].sum()
            for step in range(count):
                part = step / count if ctx.ties == "efron" else 0.0
                share = at_risk.to(risk.dtype) - part * died.to(risk.dtype)
                grad_risk = grad_risk + share * hazard / (everyone - part * dying)
            grad_risk = grad_risk - died.to(risk.dtype)
        return grad * ctx.scale * grad_risk, None, None, None, None
