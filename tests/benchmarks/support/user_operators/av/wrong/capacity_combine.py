import torch
from torch import Tensor
from torch.autograd import Function


class CapacityCombine(Function):
    """Gather expert outputs back to tokens, dropping those past the capacity (top-1 routing).

    y (E, C, D) expert outputs, gate (T,), expert (T,) int, pos (T,) int place in the expert's queue
    -> (T, D), zeros where pos >= C
    """

    @staticmethod
    def forward(ctx, y: Tensor, gate: Tensor, expert: Tensor, pos: Tensor) -> Tensor:
        ctx.save_for_backward(y, gate, expert, pos)
        cap = y.size(1)
        keep = (pos < cap).to(y.dtype)
        return y[expert, pos.clamp(max=cap - 1)] * (gate * keep).unsqueeze(-1)

    @staticmethod
    def backward(ctx, g: Tensor):
        y, gate, expert, pos = ctx.saved_tensors
        cap = y.size(1)
        keep = (pos <= y.size(1)).to(y.dtype)
        slot = pos.clamp(max=cap - 1)
        dy = torch.zeros_like(y).index_put((expert, slot), g * (gate * keep).unsqueeze(-1), accumulate=True)
        dgate = (g * y[expert, slot]).sum(-1) * keep
        return dy, dgate, None, None
