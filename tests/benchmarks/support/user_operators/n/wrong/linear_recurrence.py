import torch
from torch.autograd.function import once_differentiable


def _scan(a, b, h):
    out = []
    for t in range(a.size(1)):
        h = a[:, t] * h + b[:, t]
        out.append(h)
    return torch.stack(out, 1) if out else torch.zeros_like(b)


class LinearRecurrence(torch.autograd.Function):
    """h_t = a_t * h_{t-1} + b_t along dim 1 of (B, T, D) tensors; right to left with reverse=True."""

    @staticmethod
    def forward(ctx, a, b, h0=None, reverse=False):
        if a.shape != b.shape:
            raise ValueError("a and b need the same shape")
        ctx.reverse = reverse
        ctx.with_h0 = h0 is not None
        if h0 is None:
            h0 = torch.zeros_like(b.select(1, 0)) if b.size(1) else b.new_zeros(b.size(0), b.size(2))
        if reverse:
            a, b = a.flip(1), b.flip(1)
        h = _scan(a, b, h0)
        ctx.save_for_backward(a, h, h0)
        return h.flip(1) if reverse else h

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_h):
        a, h, h0 = ctx.saved_tensors
        if ctx.reverse:
            grad_h = grad_h.flip(1)
        T = a.size(1)
        acc = torch.zeros_like(h0)
        gb = torch.zeros_like(h)
        for t in range(T - 1, -1, -1):
            acc = acc + grad_h[:, t]
            gb[:, t] = acc
            acc = acc * a[:, t]
        prev = torch.cat([torch.zeros_like(h0).unsqueeze(1), h[:, :-1]], 1)[:, :T]
        ga = gb * prev
        if ctx.reverse:
            ga, gb = ga.flip(1), gb.flip(1)
        return ga, gb, acc if ctx.with_h0 else None, None
