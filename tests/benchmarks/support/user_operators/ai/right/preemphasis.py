import torch


class Preemphasis(torch.autograd.Function):
    """y[t] = x[t] - c * x[t-1] along the last axis.

    Parameters
    ----------
    x : Tensor (..., T)
    c : Tensor, 0-d
    edge : "zero" takes x[-1] = 0, "replicate" takes x[-1] = x[0]
    """

    @staticmethod
    def forward(ctx, x, c, edge="zero"):
        if edge not in ("zero", "replicate"):
            raise ValueError(edge)
        ctx.save_for_backward(x, c)
        ctx.edge = edge
        return x - c * Preemphasis._delay(x, edge)

    @staticmethod
    def _delay(x, edge):
        head = x[..., :1]
        if edge == "zero":
            head = torch.zeros_like(head)
        return torch.cat([head, x[..., :-1]], -1)

    @staticmethod
    def _advance(g, edge):
        ahead = torch.cat([g[..., 1:], torch.zeros_like(g[..., :1])], -1)
        if edge == "replicate":
            first = torch.cat([g[..., :1], torch.zeros_like(g[..., 1:])], -1)
            ahead = ahead + first
        return ahead

    @staticmethod
    def backward(ctx, g):
        x, c = ctx.saved_tensors
        gx = gc = None
        if ctx.needs_input_grad[0]:
            gx = g - c * Preemphasis._advance(g, ctx.edge)
        if ctx.needs_input_grad[1]:
            gc = -(g * Preemphasis._delay(x, ctx.edge)).sum()
        return gx, gc, None
