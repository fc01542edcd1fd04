import torch


class _P(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, idx, k):
        order = idx.reshape(-1).argsort(stable=True)
        ctx.save_for_backward(order)
        ctx.k = k
        return x[order // k], order

    @staticmethod
    def backward(ctx, g, _):
        (order,) = ctx.saved_tensors
        inv = torch.empty_like(order)
        inv[order] = torch.arange(order.numel(), device=order.device)
        return g[inv].view(-1, ctx.k, g.shape[-1]).sum(1), None, None


class _U(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, order, p):
        inv = order.argsort()
        ctx.save_for_backward(y, order, inv, p)
        return (y[inv].view(*p.shape, -1) * p[..., None]).sum(1)

    @staticmethod
    def backward(ctx, g):
        y, order, inv, p = ctx.saved_tensors
        gy = (g[:, None] * p[..., None]).flatten(0, 1)[inv]
        gp = (g[:, None] * y[inv].view(*p.shape, -1)).sum(-1)
        return gy, None, gp


def moe_dispatch_combine(tokens, probs, indices, experts):
    """Route tokens to experts and combine what they return.

    Args:
        tokens: ``(T, H)``
        probs: ``(T, k)`` weights of the chosen experts
        indices: ``(T, k)`` chosen experts
        experts: ``(E, H, H)`` one matrix for each expert

    Returns:
        ``(T, H)``
    """
    if indices.shape != probs.shape:
        raise ValueError("indices and probs must have the same shape")
    rows, order = _P.apply(tokens, indices, indices.shape[1])
    counts = torch.bincount(indices.reshape(-1), minlength=experts.shape[0]).tolist()
    done = torch.cat([r @ w for r, w in zip(rows.split(counts), experts)])
    return _U.apply(done, order, probs)
