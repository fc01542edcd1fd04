import torch


def _spread(x, y):
    d = max(x.dim(), y.dim())
    x = x.reshape(x.shape[:1] + (1,) * (d - x.dim()) + x.shape[1:])
    y = y.reshape(y.shape[:1] + (1,) * (d - y.dim()) + y.shape[1:])
    return x, y


def _shrink(grad, shape):
    tail = tuple(shape[1:])
    tail = (1,) * (grad.dim() - 1 - len(tail)) + tail
    dims = [i + 1 for i, s in enumerate(tail) if s == 1 and grad.shape[i + 1] != 1]
    if dims:
        grad = grad.sum(dims, keepdim=True)
    return grad.reshape((-1,) + tuple(shape[1:]))


class GSpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, op, src, dst, n, X, E):
        ctx.op, ctx.xs, ctx.es = op, X.shape, E.shape
        x, e = _spread(X[src], E)
        m = x * e if op == "mul" else x + e if op == "add" else x - e if op == "sub" else x / e
        ctx.save_for_backward(src, dst, X, E)
        return m.new_zeros((n,) + tuple(m.shape[1:])).index_add(0, dst, m)

    @staticmethod
    def backward(ctx, dZ):
        src, dst, X, E = ctx.saved_tensors
        dm = dZ[dst]
        x, e = _spread(X[src], E)
        dX = dE = None
        if ctx.needs_input_grad[4]:
            g = dm * e if ctx.op == "mul" else dm / e if ctx.op == "div" else dm
            g = _shrink(g, ctx.xs)
            dX = torch.zeros(ctx.xs, dtype=g.dtype, device=g.device).index_add(0, src, g)
        if ctx.needs_input_grad[5]:
            if ctx.op == "mul":
                g = dm * x
            elif ctx.op == "div":
                g = -dm * x / (e * e)
            elif ctx.op == "sub":
                g = -dm
            else:
                g = dm
            dE = _shrink(g, ctx.es)
        return None, None, None, None, dX, dE


def u_op_e_sum(graph, op, X, E):
    """Sum over incoming edges of ``X[src] op E``.

    ``graph`` is ``(src, dst, num_dst)``; ``X`` is ``(num_src, ...)``, ``E`` is ``(num_edges, ...)`` and
    their trailing dimensions broadcast.
    """
    src, dst, n = graph
    if op not in ("mul", "add", "sub", "div"):
        raise KeyError(op)
    if E.shape[0] != src.numel():
        raise ValueError(f"E has {E.shape[0]} rows but the graph has {src.numel()} edges")
    return GSpMM.apply(op, src, dst, n, X, E)
