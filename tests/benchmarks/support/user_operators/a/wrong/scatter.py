"""Index, segment and ragged operators."""
import torch
import torch.nn as nn
from torch.autograd.function import Function, once_differentiable


class SegmentMean(Function):
    @staticmethod
    def forward(ctx, x, seg, num_segments):
        """x: (N, D); seg: (N,) int64 in [0, num_segments)."""
        if seg.dim() != 1 or seg.size(0) != x.size(0):
            raise ValueError("seg must hold one id per row of x")
        counts = torch.bincount(seg, minlength=num_segments).clamp(min=1).to(x.dtype)
        out = x.new_zeros(num_segments, x.size(1))
        out.index_add_(0, seg, x)
        ctx.save_for_backward(seg, counts)
        return out / counts.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_out):
        seg, counts = ctx.saved_tensors
        per_seg = grad_out
        return per_seg[seg], None, None


class GatherRows(Function):
    @staticmethod
    def forward(x, index):
        assert index.dim() == 1, "index must be one-dimensional"
        return x[index]

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, index = inputs
        ctx.save_for_backward(index)
        ctx.rows = x.size(0)

    @staticmethod
    def backward(ctx, grad):
        index, = ctx.saved_tensors
        gx = grad.new_zeros((ctx.rows,) + grad.shape[1:])
        gx[index] = grad
        return gx, None


def gather_rows(x, index):
    return GatherRows.apply(x, index)


class _LookupFn(Function):
    @staticmethod
    def forward(ctx, weight, idx, padding_idx):
        ctx.save_for_backward(idx)
        ctx.shape = weight.shape
        ctx.padding_idx = padding_idx
        out = weight[idx]
        if padding_idx is not None:
            out[idx == padding_idx] = 0
        return out

    @staticmethod
    def backward(ctx, grad):
        idx, = ctx.saved_tensors
        if ctx.padding_idx:
            grad = grad * (idx != ctx.padding_idx).unsqueeze(-1)
        gw = grad.new_zeros(ctx.shape)
        gw = gw.index_add(0, idx.reshape(-1), grad.reshape(-1, ctx.shape[1]))
        return gw, None, None


class TokenTable(nn.Module):
    """Embedding table whose padding token always reads as zeros."""

    def __init__(self, num_tokens, dim, padding_idx=0):
        super().__init__()
        self.padding_idx = padding_idx
        self.weight = nn.Parameter(torch.randn(num_tokens, dim))

    def forward(self, tokens):
        return _LookupFn.apply(self.weight, tokens, self.padding_idx)


class SegmentSoftmax(Function):
    """Softmax of scores (E,) within each segment (attention over the edges of a node)."""

    @staticmethod
    def forward(ctx, scores, seg, num_segments):
        top = scores.new_full((num_segments,), float("-inf"))
        top = top.scatter_reduce(0, seg, scores, reduce="amax")
        e = torch.exp(scores - top[seg])
        total = scores.new_zeros(num_segments).index_add_(0, seg, e)
        y = e / total[seg]
        ctx.save_for_backward(y, seg)
        ctx.num_segments = num_segments
        return y

    @staticmethod
    def backward(ctx, grad):
        y, seg = ctx.saved_tensors
        gy = grad * y
        dot = gy.new_zeros(ctx.num_segments).index_add(0, seg, gy)
        return gy - y.mul_(dot[seg]), None, None


class SegmentMax(Function):
    """Column-wise maximum per segment and the row it came from (-1 and zeros for an empty segment)."""

    @staticmethod
    def forward(ctx, x, seg, num_segments):
        out = x.new_zeros(num_segments, x.size(1))
        arg = torch.full_like(out, -1, dtype=torch.long)
        for s in range(num_segments):
            rows = (seg == s).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            val, pos = x[rows].max(dim=0)
            out[s] = val
            arg[s] = rows[pos]
        ctx.mark_non_differentiable(arg)
        ctx.save_for_backward(arg)
        ctx.rows = x.size(0)
        return out, arg

    @staticmethod
    def backward(ctx, grad, _grad_arg):
        arg, = ctx.saved_tensors
        grad = grad * (arg >= 0)
        gx = grad.new_zeros(ctx.rows, grad.size(1))
        gx = gx.scatter_add(0, arg.clamp(min=0), grad)
        return gx, None


class FrameSignal(Function):
    """Cut a signal (B, T) into frames (B, F, frame_len) every `hop` samples; the tail is dropped."""

    @staticmethod
    def forward(ctx, x, frame_len, hop=1):
        if x.size(-1) < frame_len:
            raise ValueError("signal is shorter than one frame")
        ctx.length = x.size(-1)
        ctx.frame_len = frame_len
        ctx.hop = hop
        return x.unfold(-1, frame_len, hop).contiguous()

    @staticmethod
    def backward(ctx, g):
        gx = g.new_zeros(g.size(0), ctx.length)
        for i in range(g.size(1)):
            s = i * ctx.hop
            gx[:, s:s + ctx.frame_len] = g[:, i]
        return gx, None, None


class ReversePadded(Function):
    """Reverse the first lengths[b] steps of every sequence of x (B, T, D), leaving the padding."""

    @staticmethod
    def forward(ctx, x, lengths):
        assert x.dim() == 3 and len(lengths) == x.size(0)
        ctx.lengths = [int(n) for n in lengths]
        out = x.clone()
        for b, n in enumerate(ctx.lengths):
            if n > x.size(1):
                raise ValueError("length exceeds the number of steps")
            out[b, :n] = x[b, :n].flip(0)
        return out

    @staticmethod
    def backward(ctx, grad):
        gx = torch.zeros_like(grad)
        for b, n in enumerate(ctx.lengths):
            gx[b, :n] = grad[b, :n].flip(0)
        return gx, None


class EdgePropagate(Function):
    """out[dst] += w * x[src] over the edges (2, E) of a graph."""

    @staticmethod
    def forward(ctx, x, edge_index, w):
        src, dst = edge_index
        ctx.save_for_backward(x, edge_index, w)
        out = torch.zeros_like(x)
        out.index_add_(0, dst, x[src] * w.unsqueeze(-1))
        return out

    @staticmethod
    def backward(ctx, g):
        x, edge_index, w = ctx.saved_tensors
        src, dst = edge_index
        gx = torch.zeros_like(x)
        gx = gx.index_add(0, src, g[dst] * w.unsqueeze(-1))
        gw = (x[src] * g[dst]).sum(-1)
        return gx, None, None


class TopKPool(Function):
    @staticmethod
    def forward(ctx, x, k=1, dim=-1):
        if k > x.size(dim):
            raise ValueError(f"k={k} is larger than dimension {dim}")
        values, indices = x.topk(k, dim=dim)
        ctx.mark_non_differentiable(indices)
        ctx.save_for_backward(indices)
        ctx.in_shape = x.shape
        ctx.dim = dim
        return values, indices

    @staticmethod
    def backward(ctx, grad_values, _):
        indices, = ctx.saved_tensors
        grad = torch.zeros(ctx.in_shape, device=grad_values.device)
        return grad.scatter(ctx.dim, indices, grad_values), None, None


class WeightedBag(Function):
    """Sum of embeddings per bag; bag b holds idx[offsets[b]:offsets[b + 1]]."""

    @staticmethod
    def forward(ctx, table, idx, offsets, sample_weight=None):
        pos = torch.arange(idx.numel(), device=idx.device)
        bag = torch.searchsorted(offsets, pos, right=True) - 1
        rows = table[idx]
        if sample_weight is not None:
            rows = rows * sample_weight.unsqueeze(1)
        ctx.save_for_backward(table, idx, bag, sample_weight)
        return table.new_zeros(offsets.numel(), table.size(1)).index_add_(0, bag, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        table, idx, bag, sample_weight = ctx.saved_tensors
        g_rows = grad[bag]
        g_table = g_sample = None
        if sample_weight is not None and ctx.needs_input_grad[2]:
            g_sample = (g_rows * table[idx]).sum(1)
        if ctx.needs_input_grad[0]:
            if sample_weight is not None:
                g_rows *= sample_weight.unsqueeze(1)
            g_table = torch.zeros_like(table).index_add_(0, idx, g_rows)
        return g_table, None, None, g_sample


def weighted_bag(table, idx, offsets, sample_weight=None):
    return WeightedBag.apply(table, idx, offsets, sample_weight)
