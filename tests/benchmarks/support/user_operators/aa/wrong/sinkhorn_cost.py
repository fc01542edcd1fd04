import torch
from torch import Tensor
from typing import Optional


@torch.library.custom_op("aalib::sinkhorn", mutates_args=())
def _sinkhorn(C: Tensor, a: Tensor, b: Tensor, reg: float, iters: int) -> tuple[Tensor, Tensor, Tensor]:
    f, g = torch.zeros_like(a), torch.zeros_like(b)
    la, lb = a.log(), b.log()
    for _ in range(iters):
        f = -reg * torch.logsumexp((g[:, None, :] - C) / reg + lb[:, None, :], 2)
        g = -reg * torch.logsumexp((f[:, :, None] - C) / reg + la[:, :, None], 1)
    return (f * a).sum(1) + (g * b).sum(1), f, g


class _Transport(torch.autograd.Function):
    @staticmethod
    def forward(ctx, C, a, b, reg, iters):
        value, f, g = torch.ops.aalib.sinkhorn(C, a, b, reg, iters)
        ctx.save_for_backward(C, a, b, f, g)
        ctx.reg = reg
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        C, a, b, f, g = ctx.saved_tensors
        plan = torch.exp((f[:, :, None] + g[:, None, :] - C) / ctx.reg)
        plan = plan * a[:, :, None] / b.shape[1]
        return grad[:, None, None] * plan, None, None, None, None


def entropic_ot(C: Tensor, a: Optional[Tensor] = None, b: Optional[Tensor] = None, reg: float = 0.5, iters: int = 300) -> Tensor:
    """Entropic OT cost of each cost matrix in C (B, n, m), differentiable in C.

    a (B, n), b (B, m): positive weights summing to one, uniform if None. Enough iterations are
    assumed for convergence.
    """
    B, n, m = C.shape
    if a is None:
        a = C.new_full((B, n), 1 / n)
    if b is None:
        b = C.new_full((B, m), 1 / m)
    return _Transport.apply(C, a.detach(), b.detach(), reg, iters)
