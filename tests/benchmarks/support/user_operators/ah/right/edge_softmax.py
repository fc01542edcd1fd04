"""Edge softmax over the incoming (or outgoing) edges of every node."""
import torch as th

__all__ = ["EdgeSoftmax", "edge_softmax"]


def _segment_sum(x, ids, n):
    return x.new_zeros((n,) + tuple(x.shape[1:])).index_add(0, ids, x)


class EdgeSoftmax(th.autograd.Function):
    @staticmethod
    def forward(ctx, score, src, dst, num_nodes, norm_by):
        ids = dst if norm_by == "dst" else src
        shape = (-1,) + (1,) * (score.dim() - 1)
        top = th.full((num_nodes,) + tuple(score.shape[1:]), float("-inf"), dtype=score.dtype, device=score.device)
        top = top.scatter_reduce(0, ids.view(shape).expand_as(score), score, "amax")
        score = th.exp(score - top[ids])
        out = score / _segment_sum(score, ids, num_nodes)[ids]
        ctx.num_nodes = num_nodes
        ctx.save_for_backward(out, src, dst, ids)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        out, src, dst, ids = ctx.saved_tensors
        sds = out * grad_out
        accum = _segment_sum(sds, ids, ctx.num_nodes)
        return sds - out * accum[ids], None, None, None, None


def edge_softmax(edges, logits, num_nodes=None, norm_by="dst"):
    r"""Normalise ``logits`` over edges that share an end point.

    Parameters
    ----------
    edges : (LongTensor, LongTensor)
        Source and destination ids, each of shape :math:`(E,)`.
    logits : Tensor
        Shape :math:`(E, *)`.
    num_nodes : int, optional
    norm_by : {'dst', 'src'}

    Returns
    -------
    Tensor of the same shape as ``logits``.
    """
    src, dst = edges
    if norm_by not in ("dst", "src"):
        raise ValueError("norm_by must be 'dst' or 'src'")
    if logits.shape[0] != src.shape[0] or src.shape != dst.shape:
        raise ValueError("one logit per edge is needed")
    if num_nodes is None:
        num_nodes = int(max(src.max(), dst.max())) + 1
    return EdgeSoftmax.apply(logits, src, dst, num_nodes, norm_by)
