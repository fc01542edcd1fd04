"""Losses, interactions and pooling used by the ranking and retrieval models."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function


def _check_reduction(name):
    if name not in ("none", "mean", "sum"):
        raise ValueError(f"reduction must be none, mean or sum, not {name!r}")


class TripletRankLoss(Function):
    """Logistic pairwise ranking loss on (user, liked, other) rows of two tables, with decay."""

    @staticmethod
    def forward(ctx, users, items, triplets, decay=0.0, reduction="mean"):
        _check_reduction(reduction)
        if triplets.dim() != 2 or triplets.shape[1] != 3:
            raise ValueError("triplets must be (batch, 3)")
        u, liked, other = users[triplets[:, 0]], items[triplets[:, 1]], items[triplets[:, 2]]
        loss = F.softplus(-(u * (liked - other)).sum(1))
        loss = loss + 0.5 * decay * (u.square() + liked.square() + other.square()).sum(1)
        ctx.save_for_backward(users, items, triplets)
        ctx.decay = decay
        ctx.reduction = reduction
        if reduction == "mean":
            return loss.mean()
        return loss.sum() if reduction == "sum" else loss

    @staticmethod
    def backward(ctx, grad):
        users, items, triplets = ctx.saved_tensors
        u, liked, other = users[triplets[:, 0]], items[triplets[:, 1]], items[triplets[:, 2]]
        per_row = grad.expand(len(triplets)).unsqueeze(1)
        if ctx.reduction == "mean":
            per_row = per_row / len(triplets)
        diff = liked - other
        push = -per_row * torch.sigmoid(-(u * diff).sum(1, keepdim=True))
        shrink = grad.expand(len(triplets)).unsqueeze(1) * ctx.decay
        d_users = d_items = None
        if ctx.needs_input_grad[0]:
            d_users = torch.zeros_like(users)
            d_users = d_users.index_add(0, triplets[:, 0], push * diff + shrink * u)
        if ctx.needs_input_grad[1]:
            d_items = torch.zeros_like(items)
            d_items = d_items.index_add(0, triplets[:, 1], push * u + shrink * liked)
            d_items = d_items.index_add(0, triplets[:, 2], shrink * other - push * u)
        return d_users, d_items, None, None, None


class SampledSoftmaxLoss(Function):
    """Softmax loss of each query against its target and a shared set of sampled items.

    query is (batch, dim), items (count, dim), targets (batch,) and negatives (samples,)
    integer, and log_q, if given, the log sampling rate of each item (count,). A sampled
    item equal to the target of a row is left out of that row. Returns the mean loss.
    """

    @staticmethod
    def _logits(query, items, targets, negatives, log_q, temperature):
        hit = (query * items[targets]).sum(1, keepdim=True) / temperature
        miss = query @ items[negatives].t() / temperature
        if log_q is not None:
            hit = hit - log_q[targets].unsqueeze(1)
            miss = miss - log_q[negatives]
        same = negatives.unsqueeze(0) == targets.unsqueeze(1)
        return torch.cat([hit, miss.masked_fill(same, -math.inf)], dim=1)

    @staticmethod
    def forward(ctx, query, items, targets, negatives, log_q=None, temperature=1.0):
        if temperature <= 0:
            raise ValueError("temperature must be positive")
        logits = SampledSoftmaxLoss._logits(query, items, targets, negatives, log_q, temperature)
        ctx.save_for_backward(query, items, targets, negatives, log_q)
        ctx.temperature = temperature
        return (torch.logsumexp(logits, 1) - logits[:, 0]).mean()

    @staticmethod
    def backward(ctx, grad):
        query, items, targets, negatives, log_q = ctx.saved_tensors
        logits = SampledSoftmaxLoss._logits(
            query, items, targets, negatives, log_q, ctx.temperature
        )
        prob = torch.softmax(logits, 1)
        prob = torch.cat([prob[:, :1] - 1, prob[:, 1:]], dim=1) * (grad / len(query))
        hit, miss = prob[:, :1], prob[:, 1:]
        d_query = d_items = None
        if ctx.needs_input_grad[0]:
            d_query = (hit * items[targets] + miss @ items[negatives]) / ctx.temperature
        if ctx.needs_input_grad[1]:
            d_items = torch.zeros_like(items)
            d_items = d_items.index_add(0, targets, hit * query / ctx.temperature)
            d_items = d_items.index_add(0, negatives, miss.t() @ query / ctx.temperature)
        return d_query, d_items, None, None, None, None


class PackedFactorScore(Function):
    """Second-order factor score of rows given in compressed form.

    Args:
        values: (nnz,) feature values.
        features: (nnz,) integer feature of each value.
        row_start: (rows + 1,) integer offsets into the two.
        linear: (count,) first-order weights.
        factors: (count, rank) latent factors.

    Returns (rows,).
    """

    @staticmethod
    def forward(ctx, values, features, row_start, linear, factors):
        if values.shape != features.shape or values.dim() != 1:
            raise ValueError("values and features must be vectors of one length")
        sizes = row_start.diff()
        if int(row_start[-1]) != len(values) or bool((sizes < 0).any()):
            raise ValueError("row_start does not describe the values")
        row = torch.repeat_interleave(torch.arange(len(sizes), device=values.device), sizes)
        scaled = values.unsqueeze(1) * factors[features]
        pooled = factors.new_zeros(len(sizes), factors.shape[1]).index_add(0, row, scaled)
        first = values * linear[features] - 0.5 * scaled.square().sum(1)
        score = 0.5 * pooled.square().sum(1)
        ctx.save_for_backward(values, features, row, linear, factors)
        return score.index_add(0, row, first)

    @staticmethod
    def backward(ctx, grad):
        values, features, row, linear, factors = ctx.saved_tensors
        own = factors[features]
        scaled = values.unsqueeze(1) * own
        pooled = factors.new_zeros(len(grad), factors.shape[1]).index_add(0, row, scaled)
        others = pooled[row] - scaled
        per_value = grad[row]
        d_values = d_linear = d_factors = None
        if ctx.needs_input_grad[0]:
            d_values = per_value * (linear[features] + (own * others).sum(1))
        weight = per_value * values
        if ctx.needs_input_grad[3]:
            d_linear = torch.zeros_like(linear).index_add(0, features, weight)
        if ctx.needs_input_grad[4]:
            d_factors = torch.zeros_like(factors)
            d_factors[features] = weight.unsqueeze(1) * others
        return d_values, None, None, d_linear, d_factors


class FieldPairScore(Function):
    @staticmethod
    def forward(embedding, pair_weight):
        if embedding.dim() != 4 or embedding.shape[1] != embedding.shape[2]:
            raise ValueError("embedding must be (batch, fields, fields, dim)")
        upper = torch.triu(pair_weight, 1)
        return torch.einsum("bijd,bjid,ij->b", embedding, embedding, upper)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        embedding, pair_weight = ctx.saved_tensors
        d_embedding = d_weight = None
        facing = embedding.transpose(1, 2)
        if ctx.needs_input_grad[0]:
            upper = torch.triu(pair_weight, 1)
            both = (upper + upper.t()).unsqueeze(-1)
            d_embedding = grad.view(-1, 1, 1, 1) * both * embedding
        if ctx.needs_input_grad[1]:
            d_weight = torch.triu(torch.einsum("bijd,bijd,b->ij", embedding, facing, grad), 1)
        return d_embedding, d_weight

    @staticmethod
    def jvp(ctx, t_embedding, t_weight):
        embedding, pair_weight = ctx.saved_tensors
        upper = torch.triu(pair_weight, 1)
        out = 0.0
        if t_embedding is not None:
            out = out + torch.einsum("bijd,bjid,ij->b", t_embedding, embedding, upper + upper.t())
        if t_weight is not None:
            step = torch.triu(t_weight, 1)
            out = out + torch.einsum("bijd,bjid,ij->b", embedding, embedding, step)
        return out


class ListRelevanceLoss(Function):
    @staticmethod
    def _masked(x, lengths):
        index = torch.arange(x.shape[1], device=x.device)
        return x.masked_fill(index >= lengths.unsqueeze(1), -math.inf)

    @staticmethod
    def forward(ctx, scores, relevance, lengths, temperature=1.0):
        if bool((lengths < 1).any()) or bool((lengths > scores.shape[1]).any()):
            raise ValueError("every list needs between one and max entries")
        cls = ListRelevanceLoss
        target = torch.softmax(cls._masked(relevance / temperature, lengths), 1)
        log_p = torch.log_softmax(cls._masked(scores, lengths), 1)
        ctx.save_for_backward(scores, relevance, lengths)
        ctx.temperature = temperature
        return -(target * log_p.masked_fill(target == 0, 0.0)).sum(1).mean()

    @staticmethod
    def backward(ctx, grad):
        scores, relevance, lengths = ctx.saved_tensors
        cls = ListRelevanceLoss
        target = torch.softmax(cls._masked(relevance / ctx.temperature, lengths), 1)
        masked = cls._masked(scores, lengths)
        share = grad / len(scores)
        d_scores = d_relevance = None
        if ctx.needs_input_grad[0]:
            d_scores = share * (torch.softmax(masked, 1) - target)
        if ctx.needs_input_grad[1]:
            padding = masked == -math.inf
            lse = torch.logsumexp(masked, 1, keepdim=True)
            cost = (lse - scores).masked_fill(padding, 0.0)
            centred = cost - (target * cost).sum(0, keepdim=True)
            d_relevance = share * target * centred / ctx.temperature
        return d_scores, d_relevance, None, None


class SmoothNdcg(Function):
    """Normalised gain of each list with ranks made smooth by sigmoids.

    scores and gains are (batch, length), gains not negative; ``tau`` sets how sharp the
    ranks are. Lists without gain score zero. Returns (batch,).
    """

    @staticmethod
    def forward(ctx, scores: Tensor, gains: Tensor, tau: float = 1.0) -> Tensor:
        if bool((gains < 0).any()):
            raise ValueError("gains must not be negative")
        ahead = torch.sigmoid((scores.unsqueeze(1) - scores.unsqueeze(2)) / tau)
        rank = 0.5 + ahead.sum(2)
        ctx.save_for_backward(gains, ahead)
        ctx.tau = tau
        ideal = SmoothNdcg._ideal(gains)[0]
        dcg = (gains / torch.log2(1 + rank)).sum(1)
        return torch.where(ideal > 0, dcg / ideal.masked_fill(ideal == 0, 1.0), 0.0)

    @staticmethod
    def _ideal(gains):
        order = gains.argsort(dim=1, descending=True, stable=True)
        place = torch.arange(1, gains.shape[1] + 1, dtype=gains.dtype, device=gains.device)
        discount = torch.zeros_like(gains)
        discount = discount.scatter(1, order, (1 / torch.log2(1 + place)).expand_as(gains))
        return (gains * discount).sum(1), discount

    @staticmethod
    def backward(ctx, grad):
        gains, ahead = ctx.saved_tensors
        rank = 0.5 + ahead.sum(2)
        ideal, best = SmoothNdcg._ideal(gains)
        some = ideal > 0
        share = torch.where(some, grad / torch.where(some, ideal, torch.ones_like(ideal)), 0.0)
        share = share.unsqueeze(1)
        log_rank = torch.log1p(rank)
        d_scores = d_gains = None
        if ctx.needs_input_grad[0]:
            d_rank = -share * gains * math.log(2.0) / ((1 + rank) * log_rank.square())
            flow = d_rank.unsqueeze(2) * ahead * (1 - ahead) / ctx.tau
            d_scores = flow.sum(1) - flow.sum(2)
        if ctx.needs_input_grad[1]:
            discount = math.log(2.0) / log_rank
            dcg = (gains * discount).sum(1, keepdim=True)
            safe = torch.where(some, ideal, torch.ones_like(ideal)).unsqueeze(1)
            d_gains = share * (discount - dcg / safe * best)
        return d_scores, d_gains, None


class AlsRowSolve(Function):
    @staticmethod
    def _normal(items, confidence, reg):
        eye = torch.eye(items.shape[1], dtype=items.dtype, device=items.device)
        return torch.einsum("ui,ik,il->ukl", confidence, items, items) + reg * eye

    @staticmethod
    def forward(ctx, items, preference, confidence, reg=0.1):
        if preference.shape != confidence.shape or preference.shape[1] != len(items):
            raise ValueError("preference and confidence must be (users, items)")
        matrix = AlsRowSolve._normal(items, confidence, reg)
        users = torch.linalg.solve(matrix, (confidence * preference) @ items)
        ctx.save_for_backward(items, preference, confidence, users)
        ctx.reg = reg
        return users

    @staticmethod
    def backward(ctx, grad):
        items, preference, confidence, users = ctx.saved_tensors
        matrix = AlsRowSolve._normal(items, confidence, ctx.reg)
        adjoint = torch.linalg.solve(matrix.float(), grad.float()).to(grad.dtype)
        along = adjoint @ items.t()
        miss = preference - users @ items.t()
        d_items = d_pref = d_conf = None
        if ctx.needs_input_grad[0]:
            d_items = (confidence * miss).t() @ adjoint - (confidence * along).t() @ users
        if ctx.needs_input_grad[1]:
            d_pref = confidence * along
        if ctx.needs_input_grad[2]:
            d_conf = along * miss
        return d_items, d_pref, d_conf, None


class WeightedBag(Function):
    @staticmethod
    def _prepare(table, ids, offsets, weights, padding):
        ends = torch.cat([offsets[1:], offsets.new_tensor([len(ids)])])
        bag = torch.repeat_interleave(torch.arange(len(offsets), device=ids.device), ends - offsets)
        keep = torch.ones(len(ids), dtype=table.dtype, device=table.device)
        if padding is not None:
            keep = keep * (ids != padding)
        used = keep if weights is None else keep * weights
        total = used.new_zeros(len(offsets)).index_add(0, bag, used)
        return bag, keep, used, total

    @staticmethod
    def forward(ctx, table, ids, offsets, weights=None, mode="sum", padding=None):
        if mode not in ("sum", "mean"):
            raise ValueError("mode must be sum or mean")
        if int(offsets[0]) != 0:
            raise ValueError("the first offset must be zero")
        bag, _, used, total = WeightedBag._prepare(table, ids, offsets, weights, padding)
        out = table.new_zeros(len(offsets), table.shape[1])
        out = out.index_add(0, bag, used.unsqueeze(1) * table[ids])
        if mode == "mean":
            out = out / total.masked_fill(total == 0, 1.0).unsqueeze(1)
        ctx.save_for_backward(table, ids, offsets, weights, out)
        ctx.mode = mode
        ctx.padding = padding
        return out

    @staticmethod
    def backward(ctx, grad):
        table, ids, offsets, weights, out = ctx.saved_tensors
        bag, keep, used, total = WeightedBag._prepare(table, ids, offsets, weights, ctx.padding)
        rows = table[ids]
        if ctx.mode == "mean":
            grad = grad / total.unsqueeze(1)
            rows = rows - out[bag]
        d_table = d_weights = None
        if ctx.needs_input_grad[0]:
            d_table = torch.zeros_like(table)
            d_table = d_table.index_add(0, ids, used.unsqueeze(1) * grad[bag])
        if weights is not None and ctx.needs_input_grad[3]:
            d_weights = keep * (grad[bag] * rows).sum(1)
        return d_table, None, None, d_weights, None, None


class InBatchTowerLoss(nn.Module):
    def __init__(self, scale=16.0, limit=1.0, eps=1e-12):
        super().__init__()
        self.scale = scale
        self.limit = limit
        self.eps = eps
        self.last_norm = None
        self.exceeded = 0

    def _watch(self, grad):
        if grad is None:
            return None
        self.last_norm = grad.detach().norm()
        if bool((grad.detach().abs() > self.limit).any()):
            self.exceeded += 1
        return grad.clamp(-self.limit, self.limit)

    def forward(self, query, item):
        if query.shape != item.shape:
            raise ValueError("both towers must give (batch, dim)")
        q = query / (query.square().sum(1, keepdim=True) + self.eps).sqrt()
        k = item / (item.square().sum(1, keepdim=True) + self.eps).sqrt()
        cosine = q @ k.t()
        if cosine.requires_grad:
            cosine.register_hook(self._watch)
        logits = self.scale * cosine
        return (torch.logsumexp(logits, 1) - logits.diagonal()).mean()


class RecencyPool(nn.Module):
    """Pools events (batch, length, dim) with weights that fall with age (batch, length).

    The log positions of each length are kept for later calls.
    """

    def __init__(self, half_life: float, position_bias: float = 0.25):
        super().__init__()
        if half_life <= 0:
            raise ValueError("half_life must be positive")
        self.rate = math.log(2.0) / half_life
        self.position_bias = position_bias
        self._kept = {}

    def _prior(self, ages: Tensor) -> Tensor:
        key = (ages.shape[1], ages.dtype, ages.device)
        if key not in self._kept:
            place = torch.arange(ages.shape[1], dtype=ages.dtype, device=ages.device)
            self._kept[key] = -self.rate * ages - self.position_bias * torch.log1p(place)
        return self._kept[key]

    def forward(self, events: Tensor, ages: Tensor) -> Tensor:
        if events.shape[:2] != ages.shape:
            raise ValueError("one age per event")
        weight = torch.softmax(self._prior(ages), dim=1)
        return torch.einsum("bl,bld->bd", weight, events)
