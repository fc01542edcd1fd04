import torch


class ExclusiveCumprod(torch.autograd.Function):
    # y[i] = x[0] * ... * x[i - 1] along the last axis

    @staticmethod
    def forward(ctx, x):
        y = torch.cat([torch.ones_like(x[..., :1]), x[..., :-1]], dim=-1).cumprod(-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        acc = torch.zeros_like(g[..., 0])
        out = []
        for j in range(x.shape[-1] - 1, -1, -1):
            out.append(y[..., j] * acc)
            acc = g[..., j] + x[..., j] * acc
        return torch.stack(out[::-1], dim=-1)
