import torch


class SampledDenseDense(torch.autograd.Function):
    """out[k] = <a[rows[k]], b[cols[k]]> for the edges (rows, cols)."""

    @staticmethod
    def forward(ctx, a, b, rows, cols):
        assert a.size(1) == b.size(1), "a and b need the same width"
        assert a.is_floating_point() and b.is_floating_point(), "real operands only"
        ctx.save_for_backward(a, b, rows, cols)
        return (a[rows] * b[cols]).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        a, b, rows, cols = ctx.saved_tensors
        g = grad.unsqueeze(-1)
        g_a = torch.zeros_like(a).index_add(0, rows, g * b[cols])
        g_b = torch.zeros_like(b)
        g_b[cols] += g * a[rows]
        return g_a, g_b, None, None
