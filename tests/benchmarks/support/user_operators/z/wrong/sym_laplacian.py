import torch


class SymLaplacian(torch.autograd.Function):
    """y = (I - D^-1/2 A D^-1/2) x on a weighted directed edge list.

    x: (N, C)
    edge_index: (2, E) long, rows source and target
    weight: (E,) positive
    self_loop: added to every degree
    """

    @staticmethod
    def forward(ctx, x, edge_index, weight, self_loop=1.0):
        src, dst = edge_index
        deg = weight.new_full((x.shape[0],), self_loop).index_add(0, dst, weight)
        s = deg.rsqrt()
        coef = (s[src] * weight * s[dst]).unsqueeze(-1)
        ctx.save_for_backward(x, edge_index, weight, deg)
        return x.index_add(0, dst, -coef * x[src])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, (src, dst), weight, deg = ctx.saved_tensors
        s = deg.rsqrt()
        gx = gw = None
        if ctx.needs_input_grad[0]:
            coef = (s[src] * weight * s[dst]).unsqueeze(-1)
            gx = g.index_add(0, src, -coef * g[dst])
        if ctx.needs_input_grad[2]:
            inner = -(g[dst] * x[src]).sum(-1)
            gw = inner * s[src] * s[dst]
            gs = torch.zeros_like(s)
            gs.index_add_(0, dst, inner * weight * s[src])
            gs.index_add_(0, src, inner * weight * s[dst])
        return gx, None, gw, None
