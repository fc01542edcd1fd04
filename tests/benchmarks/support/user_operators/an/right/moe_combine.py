import torch


class MoECombine(torch.autograd.Function):
    """Un-permute expert outputs.

    expert_out (E, C, D); slot (T, K) long: row of the flattened (E*C, D) buffer, -1 = token dropped
    by capacity; gate (T, K).  Returns (T, D).
    """

    @staticmethod
    def forward(ctx, expert_out, slot, gate):
        ctx.save_for_backward(expert_out, slot, gate)
        rows = expert_out.flatten(0, 1)[slot.clamp(min=0)]
        kept = gate * (slot >= 0)
        return (rows * kept[..., None]).sum(1)

    @staticmethod
    def backward(ctx, g):
        expert_out, slot, gate = ctx.saved_tensors
        flat = expert_out.flatten(0, 1)
        idx = slot.clamp(min=0)
        live = (slot >= 0).to(g.dtype)
        g_rows = g[:, None] * (gate * live)[..., None]
        g_flat = torch.zeros_like(flat).index_add(0, idx.flatten(), g_rows.flatten(0, 1))
        g_gate = (flat[idx] * g[:, None]).sum(-1) * live
        return g_flat.view(expert_out.shape), None, g_gate
