import torch
from torch import Tensor


class MoECombine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, expert_out: Tensor, slot: Tensor, gates: Tensor) -> Tensor:
        ctx.save_for_backward(expert_out, slot, gates)
        kept = (slot >= 0).to(gates.dtype)
        picked = expert_out[slot.clamp(min=0)]
        return (picked * (gates * kept).unsqueeze(-1)).sum(1)

    @staticmethod
    def backward(ctx, grad: Tensor):
        expert_out, slot, gates = ctx.saved_tensors
        kept = (slot >= 0).to(gates.dtype)
        safe = slot.clamp(min=0)
        g_gates = torch.einsum("nd,nkd->nk", grad, expert_out[safe]) * kept
        per_slot = (gates * kept).unsqueeze(-1) * grad.unsqueeze(1)
        g_expert = torch.zeros_like(expert_out)
        g_expert = g_expert.index_add(0, safe.flatten(), per_slot.flatten(0, 1))
        return g_expert, None, g_gates
