"""Message passing primitives used by the molecule and citation models."""

import math
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class GCNPropagate(Function):
    """Sum of (weighted) neighbour features; edge_index holds rows (source, target)."""

    @staticmethod
    def forward(ctx, x, edge_index, edge_weight=None, num_nodes=None):
        src, dst = edge_index
        n = x.size(0) if num_nodes is None else num_nodes
        msg = x[src] if edge_weight is None else x[src] * edge_weight.unsqueeze(-1)
        out = x.new_zeros(n, x.size(1)).index_add_(0, dst, msg)
        ctx.save_for_backward(x, edge_index, edge_weight)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        x, edge_index, edge_weight = ctx.saved_tensors
        src, dst = edge_index
        grad_x = grad_w = None
        g = grad_out[dst]
        if ctx.needs_input_grad[0]:
            msg = g if edge_weight is None else g * edge_weight.unsqueeze(-1)
            grad_x = torch.zeros_like(x).index_add(0, src, msg)
        if edge_weight is not None and ctx.needs_input_grad[1]:
            grad_w = (g * x[src]).sum(-1)
        return grad_x, None, grad_w, None


class SegmentSoftmax(Function):
    """Softmax over the edges that share a target node."""

    @staticmethod
    def forward(scores: Tensor, index: Tensor, num_segments: int) -> Tensor:
        idx = index.view(-1, 1).expand_as(scores)
        top = scores.new_full((num_segments, scores.size(1)), -math.inf)
        top = top.scatter_reduce(0, idx, scores, "amax")
        ex = (scores - top[index]).exp()
        total = ex.new_zeros(num_segments, ex.size(1)).index_add(0, index, ex)
        return ex / total[index]

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, index, ctx.num_segments = inputs
        ctx.save_for_backward(output, index)

    @staticmethod
    def backward(ctx, grad: Tensor):
        alpha, index = ctx.saved_tensors
        weighted = alpha * grad
        mean = weighted.new_zeros(ctx.num_segments, weighted.size(1))
        mean = mean.index_copy(0, index, weighted)
        return weighted - alpha * mean[index], None, None


class SegmentMaxPool(Function):
    """Feature-wise maximum per graph.

    Returns the pooled features and the row each came from (-1: the graph is empty,
    its features are 0).  Of equal maxima one row gets the gradient.
    """

    @staticmethod
    def forward(ctx, x, batch, num_graphs):
        out = x.new_zeros(num_graphs, x.size(1))
        arg = torch.full(out.shape, -1, dtype=torch.long, device=x.device)
        for b in range(num_graphs):
            rows = (batch == b).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            val, k = x[rows].max(dim=0)
            out[b] = val
            arg[b] = rows[k]
        ctx.save_for_backward(arg)
        ctx.num_rows = x.size(0)
        ctx.mark_non_differentiable(arg)
        return out, arg

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out, _grad_arg):
        (arg,) = ctx.saved_tensors
        grad_x = grad_out.new_zeros(ctx.num_rows, grad_out.size(1))
        grad_x.scatter_add_(0, arg.clamp(min=0), grad_out)
        return grad_x, None, None


def _row_ids(crow):
    return torch.repeat_interleave(
        torch.arange(crow.numel() - 1, device=crow.device), crow.diff()
    )


class CsrMatmul(Function):
    """(crow, col, values) @ dense with gradients for values and dense."""

    @staticmethod
    def forward(ctx, crow, col, values, dense):
        rows = _row_ids(crow)
        out = dense.new_zeros(crow.numel() - 1, dense.size(1))
        out.index_add_(0, rows, values[:, None] * dense[col])
        ctx.save_for_backward(crow, col, values, dense)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        crow, col, values, dense = ctx.saved_tensors
        per_entry = grad_out[_row_ids(crow)]
        grad_values = (per_entry * dense[col]).sum(1)
        grad_dense = torch.zeros_like(dense)
        grad_dense = grad_dense.index_add(0, col, values[:, None] * per_entry)
        return None, grad_values, grad_dense


class EdgeGatedMean(Function):
    # GatedGCN aggregation: sum_j sig(e_ij) x_j / (sum_j sig(e_ij) + eps)
    @staticmethod
    def forward(ctx, e, x, edge_index, eps=1e-6):
        src, dst = edge_index[0], edge_index[1]
        sig = torch.sigmoid(e)
        num = torch.zeros_like(x).index_add_(0, dst, sig * x[src])
        den = torch.zeros_like(x).index_add_(0, dst, sig) + eps
        out = num / den
        ctx.save_for_backward(e, x, edge_index, out)
        ctx.eps = eps
        return out

    @staticmethod
    def backward(ctx, g):
        e, x, edge_index, out = ctx.saved_tensors
        src, dst = edge_index[0], edge_index[1]
        sig = torch.sigmoid(e)
        den = torch.zeros_like(x).index_add(0, dst, sig) + ctx.eps
        g_num = g / den
        g_sig = g_num[dst] * x[src]
        grad_e = g_sig * sig * (1 - sig)
        grad_x = torch.zeros_like(x).index_add(0, src, g_num[dst] * sig)
        return grad_e, grad_x, None, None


class EdgeLength(Function):
    """Softened edge lengths; twice differentiable, as forces are trained on."""

    @staticmethod
    def forward(pos, edge_index, soft=1e-4):
        i, j = edge_index.unbind(0)
        return ((pos[i] - pos[j]).square().sum(-1) + soft).sqrt()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], inputs[1], output)

    @staticmethod
    def backward(ctx, grad_len):
        pos, edge_index, length = ctx.saved_tensors
        i, j = edge_index.unbind(0)
        vec = pos.data.index_select(0, i) - pos.data.index_select(0, j)
        pull = (grad_len / length).unsqueeze(-1) * vec
        grad_pos = torch.zeros_like(pos)
        grad_pos = grad_pos.index_add(0, i, pull).index_add(0, j, -pull)
        return grad_pos, None, None


class EquivariantNormGate(Function):
    """v * sigmoid(|v| + b) for vector channels v of shape (N, C, 3) and b of shape (C,)."""

    @staticmethod
    def forward(ctx, v: Tensor, bias: Tensor) -> Tensor:
        if v.dim() != 3:
            raise ValueError(f"expected (N, C, 3), got {tuple(v.shape)}")
        ctx.save_for_backward(v, bias)
        return v * torch.sigmoid(v.norm(dim=-1) + bias).unsqueeze(-1)

    @staticmethod
    def backward(ctx, grad: Tensor):
        v, bias = ctx.saved_tensors
        n = v.norm(dim=-1)
        s = torch.sigmoid(n + bias)
        along = (grad * v).sum(-1) * s * (1 - s)
        unit = v / n.unsqueeze(-1)
        grad_v = grad * s.unsqueeze(-1) + along.unsqueeze(-1) * unit
        return grad_v, along.sum(0)


class TopKNodes(Function):
    """Keeps the ceil(ratio * N) nodes of highest score, gated by tanh(score)."""

    @staticmethod
    def forward(ctx, x, score, ratio=0.5):
        k = int(math.ceil(ratio * x.size(0)))
        perm = score.topk(k).indices
        ctx.save_for_backward(x, score, perm)
        ctx.mark_non_differentiable(perm)
        return x[perm] * torch.tanh(score[perm]).unsqueeze(1), perm

    @staticmethod
    def backward(ctx, grad_out, grad_perm):
        x, score, perm = ctx.saved_tensors
        gate = torch.tanh(score[perm])
        grad_x = grad_score = None
        if ctx.needs_input_grad[0]:
            kept = grad_out * gate.unsqueeze(1)
            grad_x = torch.zeros_like(x).index_add(0, perm, kept)
        if ctx.needs_input_grad[1]:
            per_node = (grad_out * x[perm]).sum(1)
            grad_score = torch.zeros_like(score).index_add(0, perm, per_node)
        return grad_x, grad_score, None


class EdgeAttentionLogits(Function):
    """q, k: (N, heads, dim); one logit per edge and head."""

    @staticmethod
    def forward(ctx, q, k, edge_index, scale: Optional[float] = None):
        src, dst = edge_index
        factor = q.size(-1) ** -0.5 if scale is None else scale
        ctx.save_for_backward(q, k, edge_index)
        ctx.scale = scale
        return (q[dst] * k[src]).sum(-1) * factor

    @staticmethod
    def backward(ctx, grad_logits):
        q, k, edge_index = ctx.saved_tensors
        src, dst = edge_index
        factor = q.size(1) ** -0.5 if ctx.scale is None else ctx.scale
        g = (grad_logits * factor).unsqueeze(-1)
        grad_q = torch.zeros_like(q).index_add(0, dst, g * k[src])
        grad_k = torch.zeros_like(k).index_add(0, src, g * q[dst])
        return grad_q, grad_k, None, None


def _segment_mean(x, batch, counts):
    total = x.new_zeros(counts.numel(), x.size(1)).index_add(0, batch, x)
    return (total / counts.to(x.dtype).unsqueeze(1))[batch]


class _GraphNormFn(Function):
    @staticmethod
    def forward(ctx, x, batch, counts, weight, bias, mean_scale, eps):
        cen = x - mean_scale * _segment_mean(x, batch, counts)
        inv = (_segment_mean(cen * cen, batch, counts) + eps).rsqrt()
        ctx.save_for_backward(x, batch, counts, weight, mean_scale)
        ctx.eps = eps
        return weight * cen * inv + bias

    @staticmethod
    def backward(ctx, g):
        x, batch, counts, weight, mean_scale = ctx.saved_tensors
        mean = _segment_mean(x, batch, counts)
        cen = x - mean_scale * mean
        inv = (_segment_mean(cen * cen, batch, counts) + ctx.eps).rsqrt()
        hat = cen * inv
        gw = g * weight
        g_cen = inv * (gw - hat * _segment_mean(gw * hat, batch, counts))
        grad_x = g_cen - _segment_mean(g_cen, batch, counts)
        grad_scale = -(g_cen * mean).sum(0)
        return grad_x, None, None, (g * hat).sum(0), g.sum(0), grad_scale, None


class GraphNorm(nn.Module):
    """Instance norm per graph with a learned share of the mean taken off."""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean_scale = nn.Parameter(torch.ones(channels))

    def forward(self, x, batch):
        counts = F.one_hot(batch).sum(0).clamp(min=1)
        return _GraphNormFn.apply(
            x, batch, counts, self.weight, self.bias, self.mean_scale, self.eps
        )
