import torch


def rlse(x, dim):
    return x.flip(dim).logcumsumexp(dim).flip(dim)


class RevLogCumSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim=-1):
        y = rlse(x, dim)
        ctx.save_for_backward(x, y)
        ctx.dim = dim
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        x, y, g = (t.movedim(ctx.dim, -1) for t in (x, y, g))
        n = x.shape[-1]
        # dy_i/dx_j = exp(x_j - y_i), j >= i
        before = torch.ones(n, n, dtype=torch.bool, device=x.device).tril(-1)
        p = (x.unsqueeze(-2) - y.unsqueeze(-1)).masked_fill(before, float("-inf")).exp()
        return (g.unsqueeze(-2) @ p).squeeze(-2).movedim(-1, ctx.dim), None
