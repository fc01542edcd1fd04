import torch
from torch.autograd.function import once_differentiable


class ExpectedReciprocalRank(torch.autograd.Function):
    """Stop probabilities in display order (B, N), each in [0, 1] -> ERR (B,)"""

    @staticmethod
    def forward(ctx, stop):
        ctx.save_for_backward(stop)
        go = torch.cumprod(1 - stop, 1)
        reach = torch.cat([torch.ones_like(go[:, :1]), go[:, :-1]], 1)
        inv = 1 / torch.arange(1, stop.shape[1] + 1, dtype=stop.dtype, device=stop.device)
        return (reach * stop * inv).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        stop, = ctx.saved_tensors
        n = stop.shape[1]
        go = torch.cumprod(1 - stop, 1)
        reach = torch.cat([torch.ones_like(go[:, :1]), go[:, :-1]], 1)
        out = torch.empty_like(stop)
        rest = torch.zeros_like(stop[:, 0])
        for i in range(n - 1, -1, -1):
            out[:, i] = grad * (reach[:, i] / (i + 1) - rest / (1 - stop[:, i]))
            rest = rest + reach[:, i] * stop[:, i] / (i + 1)
        return out
