"""Message passing primitives. edge_index is (2, E), row 0 the sources, row 1 the targets."""
import torch
import torch.nn as nn
from torch.autograd import Function


class SegmentVar(Function):
    """Variance of the rows of x in each segment; segments of one row give 0."""

    @staticmethod
    def forward(ctx, x, index, num_segments, unbiased=True):
        assert x.dim() == 2 and index.dim() == 1 and index.numel() == x.size(0)
        count = torch.bincount(index, minlength=num_segments).to(x.dtype).unsqueeze(1)
        mean = x.new_zeros(num_segments, x.size(1)).index_add(0, index, x) / count.clamp(min=1)
        centred = x - mean[index]
        denom = (count - 1 if unbiased else count).clamp(min=1)
        ctx.save_for_backward(x, index, count, denom)
        return x.new_zeros(num_segments, x.size(1)).index_add(0, index, centred ** 2) / denom

    @staticmethod
    def backward(ctx, grad):
        x, index, count, denom = ctx.saved_tensors
        mean = torch.zeros_like(grad).index_add(0, index, x) / count.clamp(min=1)
        return 2 * (x - mean[index]) * (grad / count)[index], None, None, None


class EdgeSoftmax(Function):
    """Softmax of edge scores (E, H) over the edges that enter the same node."""

    @staticmethod
    def forward(ctx, scores, dst, num_nodes):
        E, H = scores.shape
        where = dst.unsqueeze(1).expand(E, H)
        top = scores.new_full((num_nodes, H), float("-inf"))
        top = top.scatter_reduce(0, where, scores, reduce="amax")
        e = torch.exp(scores - top[dst])
        total = scores.new_zeros(num_nodes, H).index_add_(0, dst, e)
        alpha = e / total[dst]
        ctx.save_for_backward(alpha, dst)
        ctx.num_nodes = num_nodes
        return alpha

    @staticmethod
    def backward(ctx, grad_alpha):
        alpha, dst = ctx.saved_tensors
        t = alpha * grad_alpha
        acc = torch.zeros(ctx.num_nodes, alpha.size(1), device=t.device)
        acc = acc.index_add(0, dst, t)
        return t - alpha * acc[dst], None, None


class GCNPropagate(Function):
    """out[i] = sum over edges (j -> i) of w_ji x[j]; w = 1 if no weights are given."""

    @staticmethod
    def forward(ctx, x, edge_index, edge_weight=None):
        src, dst = edge_index
        msg = x[src]
        if edge_weight is not None:
            msg = msg * edge_weight.unsqueeze(-1)
        ctx.save_for_backward(x, edge_index, edge_weight)
        return torch.zeros_like(x).index_add_(0, dst, msg)

    @staticmethod
    def backward(ctx, g):
        x, edge_index, edge_weight = ctx.saved_tensors
        src, dst = edge_index
        back = g[dst]
        gw = None
        if edge_weight is not None:
            gw = (back * x[src]).sum(-1)
            back = back * edge_weight.unsqueeze(-1)
        gx = torch.zeros_like(x).index_add(0, src, g[dst])
        return gx, None, gw


def propagate(x, edge_index, edge_weight=None):
    return GCNPropagate.apply(x, edge_index, edge_weight)


class SymNormWeights(Function):
    """w_ij / sqrt(deg_i deg_j), with deg the summed weight of the entering edges."""

    @staticmethod
    def forward(ctx, weight, edge_index, num_nodes):
        if (weight <= 0).any():
            raise ValueError("weights must be positive")
        row, col = edge_index
        deg = weight.new_zeros(num_nodes).index_add(0, col, weight)
        dis = deg.pow(-0.5)
        dis[deg == 0] = 0
        ctx.save_for_backward(weight, row, col, dis)
        return dis[row] * weight * dis[col]

    @staticmethod
    def backward(ctx, g):
        weight, row, col, dis = ctx.saved_tensors
        gw = g * weight
        g_dis = torch.zeros_like(dis).index_add(0, row, gw * dis[col])
        g_dis = g_dis.index_add(0, col, gw * dis[row])
        g_deg = -0.5 * dis ** 3 * g_dis
        return g * dis[row] * dis[col], None, None


class NeighborMax(Function):
    """Largest value among the neighbours, per feature, and the edge it came by (-1: none)."""

    @staticmethod
    def forward(ctx, x, edge_index):
        src, dst = edge_index[0], edge_index[1]
        msg = x[src]
        where = dst.unsqueeze(1).expand_as(msg)
        best = torch.full_like(x, float("-inf")).scatter_reduce(0, where, msg, reduce="amax")
        eid = torch.arange(src.numel(), device=x.device).unsqueeze(1).expand_as(msg)
        cand = torch.where(msg == best[dst], eid, torch.full_like(eid, -1))
        arg = torch.full(x.shape, -1, dtype=torch.long, device=x.device)
        arg = arg.scatter_reduce(0, where, cand, reduce="amax")
        ctx.save_for_backward(src, arg)
        ctx.mark_non_differentiable(arg)
        return best.masked_fill(arg < 0, 0.0), arg

    @staticmethod
    def backward(ctx, g, _):
        src, arg = ctx.saved_tensors
        node = src[arg.clamp(min=0)]
        g = g.masked_fill(arg < 0, 0.0)
        return torch.zeros_like(g).scatter(0, node, g), None


class _NodeNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, bias, running_mean, running_var, training, momentum, eps):
        if training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(var, momentum)
        else:
            mean, var = running_mean.clone(), running_var.clone()
        ctx.save_for_backward(x, weight, mean, var)
        ctx.training, ctx.eps = training, eps
        return (x - mean) / torch.sqrt(var + eps) * weight + bias

    @staticmethod
    def backward(ctx, g):
        x, weight, mean, var = ctx.saved_tensors
        if ctx.training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
        inv = torch.rsqrt(var + ctx.eps)
        xhat = (x - mean) * inv
        gx = g * weight * inv
        if ctx.needs_input_grad[0]:
            gx = gx - gx.mean(0) - xhat * (gx * xhat).mean(0)
        return gx, (g * xhat).sum(0), g.sum(0), None, None, None, None, None


class NodeNorm(nn.Module):
    """Batch norm over all nodes of a batch of graphs, (N, F)."""

    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))
        self.momentum, self.eps = momentum, eps

    def forward(self, x):
        return _NodeNorm.apply(x, self.weight, self.bias, self.running_mean, self.running_var,
                               self.training, self.momentum, self.eps)


class EdgeDot(Function):
    """Score of each edge: <x[src], y[dst]>. The two sides may have different node counts."""

    @staticmethod
    def forward(ctx, x, y, edge_index):
        assert edge_index.dim() == 2 and edge_index.size(0) == 2
        if x.size(1) != y.size(1):
            raise ValueError("feature sizes differ")
        ctx.save_for_backward(x, y, edge_index)
        return (x[edge_index[0]] * y[edge_index[1]]).sum(dim=1)

    @staticmethod
    def backward(ctx, g):
        x, y, (src, dst) = ctx.saved_tensors
        g = g.unsqueeze(1)
        gx = torch.zeros_like(x).index_add(0, src, g * y[dst])
        gy = torch.zeros_like(y).index_add(0, src, g * x[src])
        return gx, gy, None


class GINAggregate(Function):
    """(1 + eps) x + sum of the neighbours."""

    @staticmethod
    def forward(ctx, x, eps, edge_index):
        ctx.save_for_backward(x, eps, edge_index)
        out = (1 + eps) * x
        out.index_add_(0, edge_index[1], x[edge_index[0]])
        return out

    @staticmethod
    def backward(ctx, grad_out):
        x, eps, edge_index = ctx.saved_tensors
        grad_x = grad_eps = None
        if ctx.needs_input_grad[0]:
            grad_x = (1 + eps) * grad_out
            grad_x = grad_x.index_add(0, edge_index[0], grad_out[edge_index[1]])
        if ctx.needs_input_grad[0]:
            grad_eps = (grad_out * x).sum_to_size(eps.shape)
        return grad_x, grad_eps, None


class AttentionReadout(Function):
    """Softmax the gates (N,) inside each graph and pool x (N, F).

    Returns the pooled features (G, F) and the attention (N,) that was used.
    """

    @staticmethod
    def forward(ctx, x, gate, batch, num_graphs):
        top = gate.new_full((num_graphs,), float("-inf")).scatter_reduce(0, batch, gate, "amax")
        e = (gate - top[batch]).exp()
        att = e / e.new_zeros(num_graphs).index_add(0, batch, e)[batch]
        pooled = x.new_zeros(num_graphs, x.shape[1]).index_add(0, batch, att[:, None] * x)
        ctx.save_for_backward(x, att, batch)
        return pooled, att

    @staticmethod
    def backward(ctx, g_pooled, g_att):
        x, att, batch = ctx.saved_tensors
        gp = g_pooled[batch]
        ga = (gp * x).sum(-1)
        mean = ga.new_zeros(g_pooled.shape[0]).index_add(0, batch, att * ga)
        return att[:, None] * gp, att * (ga - mean[batch]), None, None


class DirichletEnergy(Function):
    """sum over edges of w |x_i - x_j|^2 (a scalar)."""

    @staticmethod
    def forward(x, edge_index, weight=None):
        assert weight is None or weight.shape == edge_index.shape[1:]
        d = (x[edge_index[0]] - x[edge_index[1]]).pow(2).sum(-1)
        return d.sum() if weight is None else (weight * d).sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, edge_index, weight = ctx.saved_tensors
        i, j = edge_index
        diff = x[i] - x[j]
        pull = 2 * diff if weight is None else 2 * weight.unsqueeze(-1) * diff
        gx = torch.zeros_like(x).index_add(0, i, pull).index_add(0, j, -pull)
        gw = None if weight is None else g * diff.pow(2).sum(-1)
        return gx, None, gw
