"""Differentiable pieces of sequence, tree and population models."""

import math
from typing import Optional

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SmoothGlobalAlign(Function):
    """Soft-maximum global alignment score of two sequences with a linear gap cost.

    Args:
        sim: (B, N, M) similarity of every pair of positions.
        gap: scalar, (1,) or (B,) cost of one gap, subtracted per skipped position.
        temperature: width of the soft maximum.
        lengths: optional (B, 2) true lengths of the two sequences.

    Returns:
        (B,) scores.
    """

    @staticmethod
    def forward(ctx, sim, gap, temperature=1.0, lengths=None):
        if sim.dim() != 3:
            raise ValueError("sim must be (batch, rows, cols)")
        if temperature <= 0:
            raise ValueError("temperature must be positive")
        batch, rows, cols = sim.shape
        if gap.dim() > 1 or (gap.dim() == 1 and gap.shape[0] not in (1, batch)):
            raise ValueError("gap must be a scalar or one value per pair")
        if lengths is None:
            lengths = torch.tensor([[rows, cols]], device=sim.device).repeat(batch, 1)
        cost = gap.expand(batch)
        value = sim.new_empty(batch, rows + 1, cols + 1)
        value[:, :, 0] = -cost[:, None] * torch.arange(rows + 1, device=sim.device)
        value[:, 0, :] = -cost[:, None] * torch.arange(cols + 1, device=sim.device)
        weight = sim.new_empty(batch, rows, cols, 3)
        for i in range(rows):
            for j in range(cols):
                moves = torch.stack(
                    (
                        value[:, i, j] + sim[:, i, j],
                        value[:, i, j + 1] - cost,
                        value[:, i + 1, j] - cost,
                    ),
                    dim=-1,
                )
                moves = moves / temperature
                value[:, i + 1, j + 1] = temperature * moves.logsumexp(-1)
                weight[:, i, j] = moves.softmax(-1)
        ctx.save_for_backward(weight, lengths)
        ctx.gap_shape = gap.shape
        return value[torch.arange(batch, device=sim.device), lengths[:, 0], lengths[:, 1]]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_score):
        weight, lengths = ctx.saved_tensors
        batch, rows, cols, _ = weight.shape
        flow = weight.new_zeros(batch, rows + 1, cols + 1)
        every = torch.arange(batch, device=weight.device)
        flow[every, lengths[:, 0], lengths[:, 1]] = grad_score
        for i in range(rows - 1, -1, -1):
            for j in range(cols - 1, -1, -1):
                share = flow[:, i + 1, j + 1, None] * weight[:, i, j]
                flow[:, i, j] += share[:, 0]
                flow[:, i, j + 1] += share[:, 1]
                flow[:, i + 1, j] += share[:, 2]
        inner = flow[:, 1:, 1:]
        grad_sim = inner * weight[..., 0]
        skipped = (inner * (weight[..., 1] + weight[..., 2])).sum((1, 2))
        return grad_sim, -skipped.sum_to_size(ctx.gap_shape), None, None


def _upward_pass(leaves, transitions, parent):
    partial = list(leaves.unbind(0)) + [None] * (len(parent) + 1 - leaves.shape[0])
    message = []
    for node, above in enumerate(parent):
        if partial[node] is None:
            raise ValueError(f"inner node {node} has no children")
        message.append(partial[node] @ transitions[node].T)
        partial[above] = message[node] if partial[above] is None else partial[above] * message[node]
    return partial, message


class PruningLikelihood(Function):
    """Per-site log-likelihood of a rooted tree by a post-order pass."""

    @staticmethod
    def forward(ctx, leaves, transitions, root_freq, parent):
        order = parent.tolist()
        if any(above <= node for node, above in enumerate(order)):
            raise ValueError("nodes must be numbered so that parents follow their children")
        if transitions.shape[0] != len(order):
            raise ValueError("one transition matrix per edge is needed")
        partial, _ = _upward_pass(leaves, transitions, order)
        ctx.save_for_backward(leaves, transitions, root_freq)
        ctx.order = order
        return (partial[-1] @ root_freq).log()

    @staticmethod
    def backward(ctx, grad_out):
        leaves, transitions, root_freq = ctx.saved_tensors
        order = ctx.order
        partial, message = _upward_pass(leaves, transitions, order)
        seed = grad_out / (partial[-1] @ root_freq)
        down = [None] * (len(order) + 1)
        down[-1] = seed[:, None] * root_freq
        grad_edges = [None] * len(order)
        for node in range(len(order) - 1, -1, -1):
            above = order[node]
            outer = down[above] * partial[above] / message[node]
            grad_edges[node] = outer.T @ partial[node]
            down[node] = outer @ transitions[node]
        grad_leaves = torch.stack(down[: leaves.shape[0]])
        return grad_leaves, torch.stack(grad_edges), seed @ partial[-1], None


class HmmForwardLogLik(Function):
    """Log-likelihood of discrete observations under a hidden Markov model, (B,) for (B, T)."""

    @staticmethod
    def forward(
        ctx,
        log_start: Tensor,
        log_trans: Tensor,
        log_emit: Tensor,
        obs: Tensor,
        lengths: Optional[Tensor] = None,
    ) -> Tensor:
        if obs.dtype != torch.long:
            raise TypeError("obs must hold int64 symbols")
        batch, steps = obs.shape
        if lengths is None:
            lengths = obs.new_full((batch,), steps)
        if int(lengths.min()) < 1 or int(lengths.max()) > steps:
            raise ValueError("lengths must lie between 1 and the padded length")
        alpha = [log_start + log_emit[:, obs[:, 0]].T]
        for t in range(1, steps):
            reach = (alpha[-1].unsqueeze(2) + log_trans).logsumexp(1)
            alpha.append(reach + log_emit[:, obs[:, t]].T)
        alpha = torch.stack(alpha, 1)
        last = alpha[torch.arange(batch, device=obs.device), lengths - 1]
        ctx.save_for_backward(log_trans, log_emit, obs, lengths, alpha)
        return last.logsumexp(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        log_trans, log_emit, obs, lengths, alpha = ctx.saved_tensors
        grad_trans = torch.zeros_like(log_trans)
        grad_emit = torch.zeros_like(log_emit)
        message = torch.zeros_like(alpha[:, 0])
        for t in range(obs.shape[1] - 1, -1, -1):
            ends = (lengths - 1 == t).unsqueeze(1)
            here = grad_out.unsqueeze(1) * alpha[:, t].softmax(1)
            message = torch.where(ends, here, message)
            grad_emit.index_add_(1, obs[:, t], message.T.to(grad_emit.dtype))
            if t == 0:
                break
            share = (alpha[:, t - 1].unsqueeze(2) + log_trans).softmax(1).nan_to_num(0.0)
            pair = share * message.unsqueeze(1)
            grad_trans += pair.sum(0)
            message = pair.sum(2)
        return message.sum(0), grad_trans, grad_emit, None


def _joint(windows, first, last):
    batch, count, letters, _ = windows.shape
    out = windows.new_ones(batch, count, 1)
    for offset in range(first, last):
        out = (out.unsqueeze(-1) * windows[..., offset].unsqueeze(2)).flatten(2)
    return out


class KmerSpectrum(Function):
    @staticmethod
    def forward(ctx, probs, k, step=1, normalize=False):
        if probs.dim() != 3:
            raise ValueError("expected (batch, length, letters)")
        if k < 1 or k > probs.shape[1]:
            raise ValueError("k must be between 1 and the sequence length")
        windows = probs.unfold(1, k, step)
        ctx.save_for_backward(probs)
        ctx.k, ctx.step = k, step
        ctx.scale = 1.0 / windows.shape[1] if normalize else 1.0
        return _joint(windows, 0, k).sum(1) * ctx.scale

    @staticmethod
    def backward(ctx, grad_out):
        (probs,) = ctx.saved_tensors
        k = ctx.k
        windows = probs.unfold(1, k, ctx.step)
        batch, count, letters, _ = windows.shape
        grad_out = grad_out * ctx.scale
        grad_probs = torch.zeros_like(probs)
        for offset in range(k):
            left = _joint(windows, 0, offset)
            right = _joint(windows, offset + 1, k)
            cube = grad_out.reshape(batch, left.shape[2], letters, right.shape[2])
            part = torch.einsum("bnl,blar,bnr->bna", left, cube, right)
            grad_probs[:, offset : offset + count] += part
        return grad_probs, None, None, None


class MotifScan(Function):
    """Best window score of every motif, with its position and strand.

    x is (B, L, A) and pwm is (M, W, A). With ``both_strands`` the reverse complement is scanned
    too; letters must be ordered so that flipping the last axis complements them. Gives scores
    (B, M), positions (B, M) and a flag that is set for hits on the reverse strand.
    """

    @staticmethod
    def forward(ctx, x, pwm, both_strands=False):
        width = pwm.shape[1]
        if x.shape[1] < width:
            raise ValueError("sequences are shorter than the motif")
        windows = x.unfold(1, width, 1)
        scores = torch.einsum("bpaw,mwa->bpm", windows, pwm)
        count = scores.shape[1]
        if both_strands:
            other = torch.einsum("bpaw,mwa->bpm", windows, pwm.flip(1, 2))
            scores = torch.cat((scores, other), 1)
        best, where = scores.max(1)
        position = where % count
        reverse = where >= count
        ctx.save_for_backward(x, pwm, position, reverse)
        ctx.mark_non_differentiable(position, reverse)
        return best, position, reverse

    @staticmethod
    def backward(ctx, grad_best, _grad_position, _grad_reverse):
        x, pwm, position, reverse = ctx.saved_tensors
        grad_x = grad_pwm = None
        rows = torch.arange(x.shape[0], device=x.device)[:, None, None]
        cols = position.unsqueeze(-1) + torch.arange(pwm.shape[1], device=x.device)
        flipped = reverse[..., None, None]
        upstream = grad_best[..., None, None]
        if ctx.needs_input_grad[0]:
            oriented = torch.where(flipped, pwm.flip(1, 2), pwm)
            grad_x = torch.zeros_like(x).index_put(
                (rows, cols), (upstream * oriented).to(x.dtype), accumulate=True
            )
        if ctx.needs_input_grad[1]:
            hits = x[rows, cols]
            grad_pwm = (upstream * hits).sum(0)
        return grad_x, grad_pwm, None


class HillDiversity(Function):
    """Effective number of species of a given order (Hill number) along ``dim``."""

    @staticmethod
    def forward(ctx, counts, order: float = 1.0, dim: int = -1):
        if not (order > 0 and math.isfinite(order)):
            raise ValueError("order must be positive and finite")
        if bool((counts.sum(dim) <= 0).any()):
            raise ValueError("counts must have a positive total")
        share = counts / counts.sum(dim, keepdim=True)
        if order == 1.0:
            out = (-torch.special.xlogy(share, share).sum(dim)).exp()
        else:
            out = share.pow(order).sum(dim).pow(1.0 / (1.0 - order))
        ctx.save_for_backward(counts)
        ctx.order, ctx.dim = order, dim
        return out

    @staticmethod
    def backward(ctx, grad_out):
        (counts,) = ctx.saved_tensors
        order, dim = ctx.order, ctx.dim
        total = counts.sum(dim, keepdim=True)
        share = counts / total
        if order == 1.0:
            entropy = -torch.special.xlogy(share, share).sum(dim, keepdim=True)
            slope = entropy.exp() * (-share.log() - 1)
        else:
            power = share.pow(order).sum(dim, keepdim=True)
            value = power.pow(1.0 / (1.0 - order))
            slope = value * (order / (1.0 - order)) * (share.pow(order - 1.0) / power - 1.0)
        return grad_out.unsqueeze(dim) * slope / total, None, None


class ZeroInflatedNB(Function):
    """Negative log-likelihood of counts under a zero-inflated negative binomial.

    counts, mean, dispersion and dropout_logit broadcast against each other; mean and dispersion
    are positive. ``reduction`` is "none", "sum" or "mean".
    """

    @staticmethod
    def forward(ctx, counts, mean, dispersion, dropout_logit, reduction="mean"):
        if reduction not in ("none", "sum", "mean"):
            raise ValueError(f"unknown reduction {reduction!r}")
        if ctx.needs_input_grad[0]:
            raise ValueError("counts cannot require a gradient")
        if bool((mean <= 0).any()) or bool((dispersion <= 0).any()):
            raise ValueError("mean and dispersion must be positive")
        counts = counts.to(mean.dtype)
        both = dispersion + mean
        log_nb = dispersion * (dispersion / both).log() + torch.xlogy(counts, mean / both)
        log_nb = log_nb + torch.lgamma(counts + dispersion) - torch.lgamma(dispersion)
        log_nb = log_nb - torch.lgamma(counts + 1)
        softplus = nn.functional.softplus(dropout_logit)
        at_zero = torch.logaddexp(dropout_logit, log_nb) - softplus
        loss = -torch.where(counts == 0, at_zero, log_nb - softplus)
        ctx.save_for_backward(counts, mean, dispersion, dropout_logit)
        ctx.reduction = reduction
        if reduction == "sum":
            return loss.sum()
        return loss.mean() if reduction == "mean" else loss

    @staticmethod
    def backward(ctx, grad_out):
        counts, mean, dispersion, logit = ctx.saved_tensors
        shape = torch.broadcast_shapes(counts.shape, mean.shape, dispersion.shape, logit.shape)
        if ctx.reduction == "mean":
            grad_out = grad_out / math.prod(shape)
        both = dispersion + mean
        log_ratio = (dispersion / both).log()
        zero = counts == 0
        by_chance = torch.sigmoid(dispersion * log_ratio - logit)
        gate = torch.where(zero, by_chance, torch.ones_like(by_chance))
        d_mean = gate * (counts / mean - (counts + dispersion) / both)
        rise = torch.digamma(counts + dispersion) - torch.digamma(dispersion)
        d_disp = rise + log_ratio + 1 - (counts + dispersion) / both
        d_logit = torch.where(zero, 1 - by_chance, torch.zeros_like(by_chance)) - logit.sigmoid()
        grads = []
        for slope, operand in ((d_mean, mean), (d_disp, dispersion), (d_logit, logit)):
            full = (-grad_out * slope).expand(shape)
            grads.append(full.sum_to_size(operand.shape))
        return None, *grads, None


class WeightedUniFrac(Function):
    @staticmethod
    def forward(ctx, abundance, branch, leaf_index, edge_index, normalized=True):
        if leaf_index.shape != edge_index.shape:
            raise ValueError("incidence coordinates differ in length")
        mass = abundance.new_zeros(abundance.shape[0], branch.shape[0])
        mass.index_add_(1, edge_index, abundance[:, leaf_index])
        gap = mass[:, None] - mass[None]
        top = gap.abs() @ branch
        if normalized:
            weight = mass @ branch
            if bool((weight <= 0).any()):
                raise ValueError("every sample needs some mass on the tree")
            bottom = weight[:, None] + weight[None]
        else:
            bottom = torch.ones_like(top)
        ctx.save_for_backward(mass, branch, leaf_index, edge_index, top, bottom)
        ctx.taxa = abundance.shape[1]
        ctx.normalized = normalized
        return top / bottom

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        mass, branch, leaf_index, edge_index, top, bottom = ctx.saved_tensors
        gap = mass[:, None] - mass[None]
        g_top = grad_out / bottom
        g_mass = torch.einsum("ij,ije->ie", 2 * g_top, gap.sign()) * branch
        g_branch = torch.einsum("ij,ije->e", g_top, gap.abs())
        if ctx.normalized:
            g_bottom = -grad_out * top / bottom.square()
            g_weight = g_bottom.sum(0) + g_bottom.sum(1)
            g_mass = g_mass + g_weight[:, None] * branch
            g_branch = g_branch + g_weight @ mass
        g_abundance = mass.new_zeros(mass.shape[0], ctx.taxa)
        g_abundance.index_add_(1, leaf_index, g_mass[:, edge_index])
        return g_abundance, g_branch, None, None, None


def _reversible_generator(exchange, freq):
    n = freq.shape[0]
    i, j = torch.triu_indices(n, n, 1, device=freq.device)
    rates = freq.new_zeros(n, n)
    rates[i, j] = exchange.to(rates.dtype)
    rates = rates + rates.T
    root = freq.sqrt()
    return rates, root[:, None] * rates * root - torch.diag(rates @ freq)


def _slope_table(eigval, times):
    decay = torch.exp(eigval * times[:, None])
    rise = decay[:, :, None] - decay[:, None, :]
    table = rise / (eigval[:, None] - eigval)
    table.diagonal(dim1=1, dim2=2).copy_(times[:, None] * decay)
    return table


class ReversibleTransition(Function):
    """Transition matrices exp(Q t) of a time-reversible substitution model.

    exchange holds the n(n-1)/2 exchangeabilities of the strict upper triangle row by row, freq the
    n positive equilibrium frequencies, times the non-negative branch lengths (B,). Q is not
    rescaled. Returns (B, n, n).
    """

    @staticmethod
    def forward(ctx, exchange, freq, times):
        n = freq.shape[0]
        if exchange.shape != (n * (n - 1) // 2,):
            raise ValueError("exchange must hold n * (n - 1) / 2 values")
        if bool((freq <= 0).any()):
            raise ValueError("freq must be positive")
        if bool((times < 0).any()):
            raise ValueError("times must not be negative")
        rates, balanced = _reversible_generator(exchange, freq)
        eigval, eigvec = torch.linalg.eigh(balanced)
        kernel = (eigvec * torch.exp(eigval * times[:, None]).unsqueeze(1)) @ eigvec.T
        root = freq.sqrt()
        out = kernel * root / root[:, None]
        ctx.save_for_backward(rates, balanced, freq, times, eigval, eigvec, kernel)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        rates, balanced, freq, times, eigval, eigvec, kernel = ctx.saved_tensors
        root = freq.sqrt()
        grad_kernel = grad_out * root / root[:, None]
        scaled = grad_kernel * kernel
        grad_freq = (scaled.sum((0, 1)) - scaled.sum((0, 2))) / (2 * freq)
        grad_times = (grad_kernel * (balanced @ kernel)).sum((1, 2))
        inner = eigvec.T @ grad_kernel @ eigvec
        table = _slope_table(eigval, times)
        grad_balanced = eigvec @ (inner * table).sum(0) @ eigvec.T
        exits = grad_balanced.diagonal()
        cross = grad_balanced + grad_balanced.T
        cross = cross - torch.diag(cross.diagonal())
        grad_freq = grad_freq - rates @ exits + (cross * rates) @ root / (2 * root)
        per_pair = cross * root * root[:, None] - exits[:, None] * freq - exits * freq[:, None]
        i, j = torch.triu_indices(*rates.shape, 1, device=rates.device)
        return per_pair[i, j], grad_freq, grad_times


class _AverageProduct(Function):
    @staticmethod
    def forward(ctx, maps, eps):
        rows = maps.sum(-1, keepdim=True)
        cols = maps.sum(-2, keepdim=True)
        total = rows.sum(-2, keepdim=True) + eps
        ctx.save_for_backward(rows, cols, total)
        return maps - rows * cols / total

    @staticmethod
    def backward(ctx, grad_out):
        rows, cols, total = ctx.saved_tensors
        by_row = (grad_out * cols).sum(-1, keepdim=True) / total
        by_col = (grad_out * rows).sum(-2, keepdim=True) / total
        by_all = (by_row * rows).sum(-2, keepdim=True) / total
        return grad_out - by_row - by_col + by_all, None


class ApcContactHead(nn.Module):
    """Contact logits (B, L, L) from attention maps (B, C, L, L) with average product correction."""

    def __init__(self, channels: int, symmetric: bool = True, eps: float = 1e-8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels) / math.sqrt(channels))
        self.bias = nn.Parameter(torch.zeros(()))
        self.symmetric = symmetric
        self.eps = eps

    def forward(self, maps: Tensor) -> Tensor:
        if maps.dim() != 4 or maps.shape[1] != self.weight.shape[0]:
            raise ValueError("maps must be (batch, channels, length, length)")
        if self.symmetric:
            maps = maps + maps.transpose(-1, -2)
        corrected = _AverageProduct.apply(maps, self.eps)
        return torch.einsum("c,bcij->bij", self.weight, corrected) + self.bias
